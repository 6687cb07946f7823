//! Lines and what is found in them.
