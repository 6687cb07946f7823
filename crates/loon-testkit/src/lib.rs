//! Loopback model servers, temporary repositories and a terminal harness for tests.
