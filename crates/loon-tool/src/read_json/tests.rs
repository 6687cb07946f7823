//! Tests of `read_json`.
