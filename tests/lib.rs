//! End-to-end tests live in `e2e/`; this library is empty so that the package has a target.
