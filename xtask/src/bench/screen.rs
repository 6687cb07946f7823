//! The full screen in a pseudo-terminal: when the first picture stands, when a key shows, and what
//! the program does while nobody touches it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};

use super::home::Home;

const ROWS: NonZeroU16 = NonZeroU16::new(40).unwrap();
const COLUMNS: NonZeroU16 = NonZeroU16::new(120).unwrap();
/// Longest wait for a picture or a key.
const PATIENCE: Duration = Duration::from_secs(30);
/// The picture counts as standing once nothing more came for this long.
const QUIET: Duration = Duration::from_millis(150);
/// Capitals that no first picture has beside each other.
const KEYS: &str = "QXZJKWVQZX";

/// What was seen.
pub(super) struct Seen {
    /// From the start until the first picture with words in it.
    pub(super) first_picture: Duration,
    /// From the start until a key, pressed as soon as the first picture stood, showed.
    pub(super) first_key: Duration,
    /// From a later key until it showed, the median.
    pub(super) key: Duration,
    pub(super) wakeups_per_s: f64,
    pub(super) idle_cpu_percent: f64,
    /// Of all its processes together.
    pub(super) rss_mb: f64,
}

/// What was seen while an answer arrived.
pub(super) struct Streaming {
    pub(super) cpu_percent: f64,
    /// Bytes to the terminal, in thousands a second.
    pub(super) kb_per_s: f64,
    /// From a key until it showed, the median.
    pub(super) key: Duration,
}

/// Opens a program's screen, presses keys, and then leaves it alone.
pub(super) fn watch(words: &[String], home: &Home, idle: Duration) -> Result<Seen> {
    with_screen(words, home, |terminal| terminal.observe(idle))
}

/// Opens a program's screen, asks for an answer that takes a while, and presses keys meanwhile.
pub(super) fn watch_answer(words: &[String], home: &Home, time: Duration) -> Result<Streaming> {
    with_screen(words, home, |terminal| terminal.observe_answer(time))
}

/// Opens a program's screen until a text shows.
pub(super) fn until_shown(words: &[String], home: &Home, text: &str) -> Result<Duration> {
    with_screen(words, home, |terminal| {
        terminal.until(|screen| screen.contains(text))?;
        Ok(terminal.began.elapsed())
    })
}

fn with_screen<T>(
    words: &[String],
    home: &Home,
    look: impl FnOnce(&mut Terminal) -> Result<T>,
) -> Result<T> {
    let (program, arguments) = words.split_first().context("there is no command to watch")?;
    let (pty, pts) = open().context("no pseudo-terminal")?;
    pty.resize(Size::new(ROWS.get(), COLUMNS.get())).context("cannot size the terminal")?;
    let began = Instant::now();
    let child = Command::new(program)
        .args(arguments)
        .envs(home.env(program))
        .env("TERM", "xterm-256color")
        .current_dir(home.work())
        .spawn(pts)
        .with_context(|| format!("cannot run {program}"))?;
    let parser = vt100::Parser::new(ROWS, COLUMNS, 0);
    let mut terminal = Terminal { pty, parser, child, began, typed: String::new(), bytes: 0 };
    let seen = look(&mut terminal);
    terminal.end();
    seen.with_context(|| format!("while watching `{}`", words.join(" ")))
}

struct Terminal {
    pty: Pty,
    parser: vt100::Parser,
    child: std::process::Child,
    began: Instant,
    /// Keys pressed so far.
    typed: String,
    /// Bytes read so far.
    bytes: usize,
}

impl Terminal {
    fn observe(&mut self, idle: Duration) -> Result<Seen> {
        self.first_picture()?;
        let first_picture = self.began.elapsed();
        self.press()?;
        let first_key = self.began.elapsed();
        self.until_quiet()?;
        let mut latencies = Vec::new();
        for _ in 1..KEYS.len() {
            latencies.push(self.press()?.as_secs_f64());
            self.until_quiet()?;
        }
        let used = self.rest(idle)?;
        Ok(Seen {
            first_picture,
            first_key,
            key: Duration::from_secs_f64(super::table::median(&mut latencies)),
            wakeups_per_s: used.wakeups_per_s,
            idle_cpu_percent: used.cpu_percent,
            rss_mb: used.rss_mb,
        })
    }

    fn observe_answer(&mut self, time: Duration) -> Result<Streaming> {
        self.first_picture()?;
        self.until_quiet()?;
        self.pty.write_all(b"go")?;
        self.until(|text| text.contains("go"))?;
        self.pty.write_all(b"\r")?;
        self.until(|text| text.contains("lorem")).context("no answer came")?;
        let before = self.bytes;
        let used = self.rest(time)?;
        let kb_per_s = (self.bytes - before) as f64 / 1e3 / time.as_secs_f64();
        let mut latencies = Vec::new();
        for _ in 0..KEYS.len() {
            latencies.push(self.press()?.as_secs_f64());
            self.rest(QUIET)?;
        }
        let key = Duration::from_secs_f64(super::table::median(&mut latencies));
        Ok(Streaming { cpu_percent: used.cpu_percent, kb_per_s, key })
    }

    fn first_picture(&mut self) -> Result<()> {
        self.until(|text| text.chars().filter(|c| c.is_alphanumeric()).count() >= 8)
            .context("no picture came")
    }

    /// Presses the next key and gives the time until it showed.
    fn press(&mut self) -> Result<Duration> {
        let key = KEYS.chars().nth(self.typed.len()).context("no key is left")?;
        self.typed.push(key);
        let pressed = Instant::now();
        self.pty.write_all(key.to_string().as_bytes())?;
        let wanted = self.typed.clone();
        self.until(|text| text.contains(&wanted)).context("a key did not show")?;
        Ok(pressed.elapsed())
    }

    /// Touches nothing for a while and gives what the program did. The terminal is read all the
    /// same: a program may block on a full one.
    fn rest(&mut self, time: Duration) -> Result<Used> {
        let before = processes(self.child.id())?;
        let began = Instant::now();
        while began.elapsed() < time {
            self.read(time.saturating_sub(began.elapsed()))?;
        }
        Ok(Used::between(&before, &processes(self.child.id())?, began.elapsed()))
    }

    fn until(&mut self, stands: impl Fn(&str) -> bool) -> Result<()> {
        let began = Instant::now();
        while !stands(&self.parser.screen().contents()) {
            if began.elapsed() > PATIENCE {
                bail!(
                    "waited {} s; the screen shows:\n{}",
                    PATIENCE.as_secs(),
                    self.parser.screen().contents()
                );
            }
            self.read(PATIENCE)?;
        }
        Ok(())
    }

    fn until_quiet(&mut self) -> Result<()> {
        while self.read(QUIET)? {}
        Ok(())
    }

    /// Takes what the program wrote, if anything comes in time.
    fn read(&mut self, longest: Duration) -> Result<bool> {
        let milliseconds = u16::try_from(longest.as_millis()).unwrap_or(u16::MAX);
        let mut ready = [PollFd::new(self.pty.as_fd(), PollFlags::POLLIN)];
        if poll(&mut ready, PollTimeout::from(milliseconds))
            .context("cannot wait for the terminal")?
            == 0
        {
            return Ok(false);
        }
        let mut bytes = [0; 1 << 13];
        let count = self.pty.read(&mut bytes).with_context(|| {
            format!(
                "the program left the terminal, which shows:\n{}",
                self.parser.screen().contents()
            )
        })?;
        self.bytes += count;
        self.parser.process(&bytes[..count]);
        self.reply(&bytes[..count])?;
        Ok(true)
    }

    /// Answers what programs ask every terminal.
    fn reply(&mut self, bytes: &[u8]) -> Result<()> {
        for (question, answer) in
            [(&b"\x1b[6n"[..], "\x1b[1;1R"), (b"\x1b[c", "\x1b[?62;22c"), (b"\x1b[5n", "\x1b[0n")]
        {
            for _ in bytes.windows(question.len()).filter(|window| *window == question) {
                self.pty.write_all(answer.as_bytes())?;
            }
        }
        Ok(())
    }

    fn end(mut self) {
        // It was only watched; how it takes its end is no part of the measurement.
        let _ = self.child.kill();
        let _ = self.child.wait();
        drop(self.pty);
        thread::yield_now();
    }
}

/// What the kernel counts for one process with all its threads.
struct Process {
    switches: u64,
    /// User and system time in hundredths of a second.
    ticks: u64,
    rss_kib: u64,
}

/// What processes did in a while.
struct Used {
    wakeups_per_s: f64,
    cpu_percent: f64,
    rss_mb: f64,
}

impl Used {
    fn between(before: &Processes, after: &Processes, time: Duration) -> Self {
        let grown = |count: fn(&Process) -> u64| -> f64 {
            let grown = after
                .iter()
                .map(|(pid, now)| count(now).saturating_sub(before.get(pid).map_or(0, count)));
            grown.sum::<u64>() as f64 / time.as_secs_f64()
        };
        let rss_kib: u64 = after.values().map(|process| process.rss_kib).sum();
        Self {
            wakeups_per_s: grown(|process| process.switches),
            // The kernel counts in hundredths of a second.
            cpu_percent: grown(|process| process.ticks),
            rss_mb: rss_kib as f64 * 1024.0 / 1e6,
        }
    }
}

type Processes = BTreeMap<u32, Process>;

/// A process and all below it.
fn processes(root: u32) -> Result<Processes> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc").context("idle rows need /proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        if let Some(stat) = stat(pid) {
            parents.insert(pid, stat.0);
        }
    }
    let below = |mut pid: u32| loop {
        if pid == root {
            return true;
        }
        match parents.get(&pid) {
            Some(parent) if *parent > 1 => pid = *parent,
            _ => return false,
        }
    };
    Ok(parents
        .keys()
        .filter(|pid| below(**pid))
        .filter_map(|pid| Some((*pid, counters(*pid)?)))
        .collect())
}

/// Parent and time of a process; nothing if it is gone.
fn stat(pid: u32) -> Option<(u32, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; what follows it is numbers.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some((u32::try_from(number(1)?).ok()?, number(11)? + number(12)?))
}

fn counters(pid: u32) -> Option<Process> {
    let field = |text: &str, name: &str| -> Option<u64> {
        text.lines()
            .find_map(|line| line.strip_prefix(name))?
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    };
    let mut switches = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        switches += field(&status, "voluntary_ctxt_switches:").unwrap_or(0);
    }
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(Process { switches, ticks: stat(pid)?.1, rss_kib: field(&status, "VmRSS:").unwrap_or(0) })
}
