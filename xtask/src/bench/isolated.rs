//! What a child process that was started ahead saves.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::home::Home;

/// How long a child that is started ahead has until it is needed. Long enough to be ready.
const LEAD: Duration = Duration::from_millis(500);

/// Time from a prompt to the first event of its session in a child process. `warm` starts the child
/// before.
pub(super) fn first_event(loon: &Path, home: &Home, warm: bool) -> Result<Duration> {
    let message = json!({"run": {
        "execution_id": unused_id()?, "flow": "prompt", "version": 1,
        "input": {"prompt": "Say hello.", "cwd": home.work()},
    }});
    let began = Instant::now();
    #[expect(clippy::disallowed_methods, reason = "measured as a stranger would start it")]
    let mut child = Command::new(loon)
        .args(["worker", "--stdio"])
        .envs(home.env(&loon.to_string_lossy()))
        .current_dir(home.work())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {}", loon.display()))?;
    let began = if warm {
        std::thread::sleep(LEAD);
        Instant::now()
    } else {
        began
    };
    let mut input = child.stdin.take().context("no way into the child")?;
    writeln!(input, "{message}")?;
    let mut line = String::new();
    let output = child.stdout.take().context("no way out of the child")?;
    BufReader::new(output).read_line(&mut line)?;
    let took = began.elapsed();
    child.kill()?;
    child.wait()?;
    ensure!(line.contains("execution.started"), "the child said {line:?}");
    Ok(took)
}

/// An id of the present moment, for a session of its own.
fn unused_id() -> Result<String> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let (ms, rest) = (now.as_millis(), now.subsec_nanos());
    Ok(format!("{:08x}-{:04x}-7000-8000-{rest:012x}", ms >> 16, ms & 0xffff))
}
