//! The one place that starts processes: groups, pipes, bounded buffers, clean-up, and the Git wrapper. Knows neither tools nor sessions.
