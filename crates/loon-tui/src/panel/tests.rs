//! What the panel shows in which room.
