//! Tests of `notebook_edit`.
