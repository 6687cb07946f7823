//! Typed settings in layers, their schema, and edits that keep comments. Knows no front end.
