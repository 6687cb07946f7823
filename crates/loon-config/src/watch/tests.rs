//! Changes of files arrive as settings.
