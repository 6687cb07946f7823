//! The benchmark: what one run of the command costs against a model server on loopback that answers
//! the same way every time. Programs are measured in turn, so that they share the machine's moods;
//! compare ratios within one run, not numbers of two machines.

mod home;
mod isolated;
mod measure;
mod peers;
mod screen;
mod server;
mod table;
mod wire;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use self::home::Home;
use self::measure::Cost;
pub(crate) use self::measure::measure_here;
use self::peers::{PEERS, Peer};
use self::server::Server;
use self::table::Table;

/// Tool rounds of the `tools` row.
const ROUNDS: usize = 50;
/// Bytes of text of the `stream` row, and of each of its deltas.
const STREAM_BYTES: usize = 5_000_000;
const DELTA_BYTES: usize = 20;
/// Tool rounds of the session that the `resume` rows continue.
const OLD_ROUNDS: usize = 200;
/// Pieces of the paced answer: more than are watched.
const PACED: usize = 4000;
/// How long a screen is left alone for the idle rows, and watched for the rows of an answer.
const IDLE: Duration = Duration::from_secs(5);

/// Options of `cargo xtask bench`.
#[derive(Args)]
pub(crate) struct Options {
    /// The command to measure. Build it first: `cargo build --release`.
    #[arg(long, default_value = "target/release/loon")]
    loon: PathBuf,
    /// Runs of each row; the median counts. One more is made first and left out.
    #[arg(short = 'n', long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// Rows to measure; all if none is named.
    rows: Vec<RowName>,
    /// Another program to set beside ours, as NAME=COMMAND. The command runs one prompt without a
    /// screen; `{prompt}` stands for the prompt, `{url}` for the base URL of the model server with
    /// its version segment. Words are split at blanks. It brings its own settings.
    #[arg(long = "vs", value_name = "NAME=COMMAND", value_parser = named)]
    others: Vec<(String, String)>,
    /// The command that opens the other program's screen, as NAME=COMMAND.
    #[arg(long = "vs-screen", value_name = "NAME=COMMAND", value_parser = named)]
    other_screens: Vec<(String, String)>,
    /// The command that continues the other program's newest session with a prompt, without a
    /// screen, as NAME=COMMAND.
    #[arg(long = "vs-resume", value_name = "NAME=COMMAND", value_parser = named)]
    other_resumes: Vec<(String, String)>,
    /// The command that opens the screen with it, as NAME=COMMAND.
    #[arg(long = "vs-resume-screen", value_name = "NAME=COMMAND", value_parser = named)]
    other_resume_screens: Vec<(String, String)>,
}

/// A group of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum RowName {
    /// Starting and ending.
    Version,
    /// One prompt, one short answer.
    Oneshot,
    /// Many rounds of a tool call.
    Tools,
    /// A long answer in small pieces.
    Stream,
    /// The full screen: first picture, first key, idle.
    Screen,
    /// The full screen while an answer arrives.
    Answer,
    /// Continuing a session of 200 tool rounds.
    Resume,
    /// A prompt in a child process of its own, started when it is needed or ahead.
    Isolated,
}

fn named(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, command)) if !name.is_empty() && !command.trim().is_empty() => {
            Ok((name.into(), command.into()))
        }
        _ => Err("write it as NAME=COMMAND".into()),
    }
}

/// A program under measurement.
struct Program {
    name: String,
    /// Words that print the version.
    version: Vec<String>,
    /// Words that run one prompt, with `{prompt}` and `{url}`.
    prompt: Vec<String>,
    /// Words that open the screen, with `{url}`; none if it has none.
    screen: Vec<String>,
    /// Words that continue the newest session with one prompt; none if it cannot.
    resume: Vec<String>,
    /// Words that open the screen with it.
    resume_screen: Vec<String>,
}

impl Program {
    fn ours(binary: &Path) -> Self {
        let words = |rest: &[&str]| {
            std::iter::once(binary.to_string_lossy().into_owned())
                .chain(rest.iter().map(ToString::to_string))
                .collect()
        };
        // One override names the server of the row; the rest is in the settings of the home.
        let url = "providers.bench.base_url={url}";
        Self {
            name: "loon".into(),
            version: words(&["--version"]),
            prompt: words(&["exec", "--json", "--mode", "bypass", "--set", url, "{prompt}"]),
            screen: words(&["--set", url]),
            resume: words(&[
                "exec",
                "--json",
                "--continue",
                "--mode",
                "bypass",
                "--set",
                url,
                "{prompt}",
            ]),
            resume_screen: words(&["--continue", "--set", url]),
        }
    }

    fn peer(peer: &Peer) -> Self {
        let words = |command: &str| command.split_whitespace().map(str::to_owned).collect();
        Self {
            name: peer.name.into(),
            version: vec![peer.name.into(), "--version".into()],
            prompt: words(peer.prompt),
            screen: words(peer.screen),
            resume: Vec::new(),
            resume_screen: Vec::new(),
        }
    }

    fn other(name: &str, prompt: &str, options: &Options) -> Self {
        let words = |command: &str| -> Vec<String> {
            command.split_whitespace().map(str::to_owned).collect()
        };
        let of = |commands: &[(String, String)]| {
            commands
                .iter()
                .find(|(other, _)| other == name)
                .map(|(_, command)| words(command))
                .unwrap_or_default()
        };
        let prompt = words(prompt);
        Self {
            name: name.into(),
            version: prompt.iter().take(1).cloned().chain(["--version".into()]).collect(),
            prompt,
            screen: of(&options.other_screens),
            resume: of(&options.other_resumes),
            resume_screen: of(&options.other_resume_screens),
        }
    }
}

fn fill(words: &[String], url: &str) -> Vec<String> {
    words
        .iter()
        .map(|word| {
            word.replace("{url}", url).replace("{prompt}", "Do the work and say when it is done.")
        })
        .collect()
}

/// Measures all rows and gives the table.
pub(crate) fn run(options: &Options) -> Result<String> {
    let loon = options.loon.canonicalize().with_context(|| {
        format!("{} is not there; run `cargo build --release` first", options.loon.display())
    })?;
    let mut programs = vec![Program::ours(&loon)];
    programs.extend(
        options.others.iter().map(|(name, command)| Program::other(name, command, options)),
    );
    let named = |name: &str| options.others.iter().any(|(other, _)| other == name);
    programs.extend(
        PEERS
            .iter()
            .filter(|peer| !named(peer.name) && peers::is_on_path(peer.name))
            .map(Program::peer),
    );
    let mut bench = Bench {
        home: Home::new()?,
        server: Server::start()?,
        table: Table::new(programs.iter().map(|program| program.name.clone()).collect()),
        programs,
        runs: usize::from(options.runs),
    };
    let wanted = |row| options.rows.is_empty() || options.rows.contains(&row);
    if wanted(RowName::Version) {
        bench.version()?;
    }
    if wanted(RowName::Oneshot) {
        bench.oneshot()?;
    }
    if wanted(RowName::Tools) {
        bench.tools()?;
    }
    if wanted(RowName::Stream) {
        bench.stream()?;
    }
    if wanted(RowName::Screen) {
        bench.screen()?;
    }
    if wanted(RowName::Answer) {
        bench.answer()?;
    }
    if wanted(RowName::Resume) {
        bench.resume()?;
    }
    if wanted(RowName::Isolated) {
        bench.isolated(&loon)?;
    }
    Ok(bench.table.render())
}

struct Bench {
    home: Home,
    server: Server,
    programs: Vec<Program>,
    table: Table,
    runs: usize,
}

impl Bench {
    /// Runs every program `runs` times in turn, after one run of each that is left out.
    fn interleaved(&mut self, mut one: impl FnMut(&mut Self, usize) -> Result<()>) -> Result<()> {
        for round in 0..=self.runs {
            self.table.counts(round > 0);
            for program in 0..self.programs.len() {
                one(self, program)?;
            }
        }
        Ok(())
    }

    fn headless(&self, words: &[String]) -> Result<Cost> {
        let cost = measure::measure(words, &self.home)?;
        if cost.status != 0 {
            bail!(
                "`{}` ended with status {}; run it by hand to see why",
                words.join(" "),
                cost.status
            );
        }
        Ok(cost)
    }

    fn version(&mut self) -> Result<()> {
        self.interleaved(|bench, program| {
            let cost = bench.headless(&bench.programs[program].version.clone())?;
            bench.table.add("version: CPU, ms", program, cost.cpu_s * 1e3);
            bench.table.add("version: memory, MB", program, cost.rss_mb);
            Ok(())
        })
    }

    fn oneshot(&mut self) -> Result<()> {
        self.interleaved(|bench, program| {
            let words = fill(&bench.programs[program].prompt, &bench.server.url("echo"));
            let cost = bench.headless(&words)?;
            let seen = bench.server.take();
            bench.table.add("one prompt: wall, ms", program, cost.wall_s * 1e3);
            bench.table.add("one prompt: CPU, ms", program, cost.cpu_s * 1e3);
            bench.table.add("one prompt: memory, MB", program, cost.rss_mb);
            let first = seen.first().context("no request reached the model server")?;
            bench.table.add("first request, bytes", program, first.bytes as f64);
            Ok(())
        })
    }

    fn tools(&mut self) -> Result<()> {
        self.interleaved(|bench, program| {
            let words =
                fill(&bench.programs[program].prompt, &bench.server.url(&format!("tools{ROUNDS}")));
            let cost = bench.headless(&words)?;
            let seen = bench.server.take();
            if seen.len() <= ROUNDS {
                bail!(
                    "{} made {} requests instead of {}",
                    bench.programs[program].name,
                    seen.len(),
                    ROUNDS + 1
                );
            }
            let mut gaps: Vec<f64> = seen
                .windows(2)
                .map(|pair| {
                    pair[1].began.saturating_duration_since(pair[0].ended).as_secs_f64() * 1e3
                })
                .collect();
            bench.table.add("a tool round, ms", program, table::median(&mut gaps));
            bench.table.add("50 tool rounds: CPU, ms", program, cost.cpu_s * 1e3);
            bench.table.add("50 tool rounds: memory, MB", program, cost.rss_mb);
            Ok(())
        })
    }

    fn stream(&mut self) -> Result<()> {
        self.interleaved(|bench, program| {
            let words = fill(
                &bench.programs[program].prompt,
                &bench.server.url(&format!("stream{STREAM_BYTES}")),
            );
            let cost = bench.headless(&words)?;
            bench.server.take();
            bench.table.add(
                "5 MB in 20-byte pieces: CPU, ms a MB",
                program,
                cost.cpu_s * 1e3 / (STREAM_BYTES as f64 / 1e6),
            );
            bench.table.add("5 MB in 20-byte pieces: memory, MB", program, cost.rss_mb);
            Ok(())
        })
    }

    fn screen(&mut self) -> Result<()> {
        self.interleaved(|bench, program| {
            let words = fill(&bench.programs[program].screen, &bench.server.url("echo"));
            if words.is_empty() {
                return Ok(());
            }
            let seen = screen::watch(&words, &bench.home, IDLE)?;
            bench.server.take();
            bench.table.add(
                "screen: first picture, ms",
                program,
                seen.first_picture.as_secs_f64() * 1e3,
            );
            bench.table.add("screen: first key, ms", program, seen.first_key.as_secs_f64() * 1e3);
            bench.table.add("screen: key to picture, ms", program, seen.key.as_secs_f64() * 1e3);
            bench.table.add("screen: idle wake-ups a second", program, seen.wakeups_per_s);
            bench.table.add("screen: idle CPU, %", program, seen.idle_cpu_percent);
            bench.table.add("screen: idle memory, MB", program, seen.rss_mb);
            Ok(())
        })
    }

    fn answer(&mut self) -> Result<()> {
        self.interleaved(|bench, program| {
            let words =
                fill(&bench.programs[program].screen, &bench.server.url(&format!("paced{PACED}")));
            if words.is_empty() {
                return Ok(());
            }
            let seen = screen::watch_answer(&words, &bench.home, IDLE)?;
            bench.table.add("answer at 4 KB/s: CPU, %", program, seen.cpu_percent);
            bench.table.add("answer at 4 KB/s: to the terminal, KB/s", program, seen.kb_per_s);
            bench.table.add(
                "answer at 4 KB/s: key to picture, ms",
                program,
                seen.key.as_secs_f64() * 1e3,
            );
            Ok(())
        })
    }

    /// Ours alone: the first column.
    fn isolated(&mut self, loon: &Path) -> Result<()> {
        for round in 0..=self.runs {
            self.table.counts(round > 0);
            for (row, warm) in [
                ("child process: first event, cold, ms", false),
                ("the same, started ahead, ms", true),
            ] {
                let took = isolated::first_event(loon, &self.home, warm)?;
                self.table.add(row, 0, took.as_secs_f64() * 1e3);
            }
        }
        Ok(())
    }

    fn resume(&mut self) -> Result<()> {
        let old = self.server.url(&format!("tools{OLD_ROUNDS}"));
        for program in 0..self.programs.len() {
            if !self.programs[program].resume.is_empty() {
                self.headless(&fill(&self.programs[program].prompt, &old))?;
            }
        }
        self.interleaved(|bench, program| {
            let url = bench.server.url("echo");
            // The screen first: what it shows ends with the answer of the run before.
            let words = fill(&bench.programs[program].resume_screen, &url);
            if !words.is_empty() {
                let shown = screen::until_shown(&words, &bench.home, "Done.")?;
                bench.table.add("old session on screen, ms", program, shown.as_secs_f64() * 1e3);
            }
            let words = fill(&bench.programs[program].resume, &url);
            if !words.is_empty() {
                let cost = bench.headless(&words)?;
                bench.table.add("old session, one prompt: CPU, ms", program, cost.cpu_s * 1e3);
                bench.table.add("old session, one prompt: memory, MB", program, cost.rss_mb);
            }
            bench.server.take();
            Ok(())
        })
    }
}
