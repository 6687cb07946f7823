//! The native tools, one a file, and the one write path for files. Knows no session and decides no permission.
