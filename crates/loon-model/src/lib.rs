//! Model wire formats, streams, catalog and prices. Does not know what a tool means.
