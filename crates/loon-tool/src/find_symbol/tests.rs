//! Tests of `find_symbol`.
