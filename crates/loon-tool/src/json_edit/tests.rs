//! Tests of `json_edit`.
