//! Tests of `file_compare`.
