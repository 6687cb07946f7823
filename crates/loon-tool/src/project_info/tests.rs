//! Tests of `project_info`.
