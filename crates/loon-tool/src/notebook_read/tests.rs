//! Tests of `notebook_read`.
