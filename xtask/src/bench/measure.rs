//! What one run of a command costs. The kernel adds up what children used that have been waited
//! for, over all of a process's children; a fresh process per command makes that the command's own.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::{Value, json};

use super::home::Home;

/// What a run cost, children and their children included.
pub(super) struct Cost {
    pub(super) status: i64,
    pub(super) wall_s: f64,
    /// User and system time.
    pub(super) cpu_s: f64,
    /// Peak of the largest single process.
    pub(super) rss_mb: f64,
}

#[expect(clippy::disallowed_methods, reason = "the benchmark starts what it measures, bare")]
fn command(program: &str) -> Command {
    Command::new(program)
}

/// Runs a command in a process of its own that measures it.
pub(super) fn measure(words: &[String], home: &Home) -> Result<Cost> {
    let program = words.first().context("there is no command to measure")?;
    let us = std::env::current_exe().context("cannot find this program")?;
    let output = command(&us.to_string_lossy())
        .args(["measure", "--"])
        .args(words)
        .envs(home.env(program))
        .current_dir(home.work())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start the measuring process")?;
    let report: Value =
        serde_json::from_slice(&output.stdout).context("the measuring process gave no report")?;
    let number =
        |name: &str| report[name].as_f64().with_context(|| format!("the report has no {name}"));
    Ok(Cost {
        status: report["status"].as_i64().unwrap_or(-1),
        wall_s: number("wall_s")?,
        cpu_s: number("cpu_s")?,
        rss_mb: number("rss_mb")?,
    })
}

/// The measuring process: runs the command with its output thrown away and gives the report.
pub(crate) fn measure_here(words: &[String]) -> Result<String> {
    let Some((program, arguments)) = words.split_first() else {
        bail!("there is no command to measure")
    };
    let began = Instant::now();
    let status = command(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {program}"))?;
    let wall_s = began.elapsed().as_secs_f64();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("the kernel gives no usage")?;
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    // Linux counts in KiB, macOS in bytes.
    let unit = if cfg!(target_os = "macos") { 1.0 } else { 1024.0 };
    Ok(json!({
        "status": status.code().map_or(-1, i64::from),
        "wall_s": wall_s,
        "cpu_s": seconds(usage.user_time()) + seconds(usage.system_time()),
        "rss_mb": usage.max_rss() as f64 * unit / 1e6,
    })
    .to_string())
}
