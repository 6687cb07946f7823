//! End-to-end tests of the built `loon`.
