//! The full screen: takes events, sends commands, holds no truth of its own.
