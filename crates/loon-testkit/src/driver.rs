//! Starts the real `loon` without a terminal and reads what it says.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::PATIENCE;
use crate::binary::loon_binary;
use crate::home::Home;

/// What the process finds on its standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The end at once.
    Null,
    /// A pipe that stays open; written with [`Running::write_line`].
    Open,
    /// These bytes, then the end.
    Bytes(Vec<u8>),
}

/// A command line to run.
pub struct Loon {
    arguments: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    input: Input,
    before: String,
    redirects: String,
    lines_read: Option<usize>,
}

impl Loon {
    /// `loon` in this home and folder, without arguments.
    pub fn new(home: &Home, cwd: impl AsRef<Path>) -> Self {
        Self {
            arguments: Vec::new(),
            env: home.env(),
            cwd: cwd.as_ref().to_owned(),
            input: Input::Null,
            before: String::new(),
            redirects: String::new(),
            lines_read: None,
        }
    }

    /// `loon exec --json` with more arguments.
    pub fn exec<A: Into<OsString>>(
        home: &Home,
        cwd: impl AsRef<Path>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Self::new(home, cwd).args(["exec", "--json"]).args(arguments)
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets what is on standard input.
    #[must_use]
    pub fn input(mut self, input: Input) -> Self {
        self.input = input;
        self
    }

    /// Starts through a shell with these redirects (`<&-`, `>/dev/full`).
    #[must_use]
    pub fn redirect(mut self, redirects: &str) -> Self {
        redirects.clone_into(&mut self.redirects);
        self
    }

    /// Starts through a shell after these commands (`ulimit -f 16;`).
    #[must_use]
    pub fn after(mut self, commands: &str) -> Self {
        commands.clone_into(&mut self.before);
        self
    }

    /// Closes the reading end of standard output after this many lines.
    #[must_use]
    pub fn reader_leaves_after(mut self, lines: usize) -> Self {
        self.lines_read = Some(lines);
        self
    }

    /// Runs to the end.
    pub fn run(self) -> Finished {
        self.start().finish()
    }

    /// Starts and returns at once.
    pub fn start(self) -> Running {
        let lines_read = self.lines_read.unwrap_or(usize::MAX);
        let input = self.input.clone();
        let mut child = self.command().spawn().expect("loon starts");
        let mut stdin = child.stdin.take();
        if let Input::Bytes(bytes) = input
            && let Some(mut pipe) = stdin.take()
        {
            // A process that does not read its input may end before all of it is written.
            thread::spawn(move || drop(pipe.write_all(&bytes)));
        }
        let pid = Pid::from_raw(child.id().cast_signed());
        let stdout = child.stdout.take().expect("a pipe");
        let stderr = child.stderr.take().expect("a pipe");
        Running {
            pid,
            stdin,
            lines: read_lines(stdout, lines_read),
            seen: Vec::new(),
            position: 0,
            stderr: Some(read_all(stderr)),
            exit: wait(child),
            ended: false,
        }
    }

    #[expect(clippy::disallowed_methods, reason = "tests start what they test")]
    fn command(self) -> Command {
        let mut command = if self.redirects.is_empty() && self.before.is_empty() {
            Command::new(loon_binary())
        } else {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("{} exec \"$@\" {}", self.before, self.redirects), "sh"]);
            shell.arg(loon_binary());
            shell
        };
        let stdin = if self.input == Input::Null { Stdio::null() } else { Stdio::piped() };
        command
            .args(self.arguments)
            .env_clear()
            .envs(self.env)
            .current_dir(self.cwd)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// A process under way. It is killed with this value.
pub struct Running {
    pid: Pid,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    seen: Vec<Vec<u8>>,
    position: usize,
    stderr: Option<JoinHandle<Vec<u8>>>,
    exit: Receiver<ExitStatus>,
    ended: bool,
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Reads events up to the first, after those already waited for, that the function takes.
    pub fn wait_event(&mut self, what: &str, mut wanted: impl FnMut(&Value) -> bool) -> Value {
        loop {
            while let Some(line) = self.seen.get(self.position) {
                self.position += 1;
                let event: Value = serde_json::from_slice(line)
                    .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(line)));
                if wanted(&event) {
                    return event;
                }
            }
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.seen.push(line),
                Err(error) => panic!("waited in vain for {what} ({error}):\n{}", self.said()),
            }
        }
    }

    /// Reads the next line, whatever it is.
    pub fn wait_line(&mut self) -> String {
        while self.position == self.seen.len() {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.seen.push(line),
                Err(error) => panic!("waited in vain for a line ({error}):\n{}", self.said()),
            }
        }
        self.position += 1;
        String::from_utf8_lossy(&self.seen[self.position - 1]).trim_end().to_owned()
    }

    /// Reads events up to the next of this type.
    pub fn wait_type(&mut self, kind: &str) -> Value {
        self.wait_event(kind, |event| event["type"] == kind)
    }

    /// Writes one line to its standard input.
    pub fn write_line(&mut self, line: impl std::fmt::Display) {
        let stdin = self.stdin.as_mut().expect("an open standard input");
        writeln!(stdin, "{line}").expect("loon reads its input");
    }

    /// Ends its standard input.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Reads everything up to the end of standard output, or until the reader has left it.
    pub fn wait_output_closed(&mut self) {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => panic!("loon does not end:\n{}", self.said()),
            }
        }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill(self.pid, signal).expect("a living process");
    }

    /// Reads everything up to the end of the process. Its input, if open, stays open.
    pub fn finish(mut self) -> Finished {
        self.wait_output_closed();
        let status = self.exit.recv_timeout(PATIENCE);
        let Ok(status) = status else { panic!("loon does not end:\n{}", self.said()) };
        self.ended = true;
        let stderr = self.stderr.take().map(|reader| reader.join().unwrap_or_default());
        Finished {
            code: status.code(),
            signal: status.signal(),
            stdout: self.seen.concat(),
            stderr: String::from_utf8_lossy(&stderr.unwrap_or_default()).into_owned(),
        }
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&self.seen.concat()).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            let _ = kill(self.pid, Signal::SIGKILL);
        }
    }
}

/// A process that ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Exit status, if it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// All of standard output.
    pub stdout: Vec<u8>,
    /// All of standard error.
    pub stderr: String,
}

impl Finished {
    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).expect("UTF-8 on standard output")
    }

    /// Every line of standard output as an event; anything else there fails the test.
    pub fn events(&self) -> Vec<Value> {
        let text = self.text();
        assert!(text.is_empty() || text.ends_with('\n'), "a torn last line: {text:?}");
        text.lines()
            .map(|line| {
                let event: Value = serde_json::from_str(line)
                    .unwrap_or_else(|error| panic!("{error} in {line:?}; {}", self.stderr));
                assert!(event["type"].is_string(), "an event without type: {line}");
                event
            })
            .collect()
    }

    /// Events of one type.
    pub fn of_type(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["type"] == kind).collect()
    }

    /// Final states of the items of one kind, in order of completion.
    pub fn items(&self, kind: &str) -> Vec<Value> {
        self.of_type("item.completed")
            .into_iter()
            .map(|event| event["item"].clone())
            .filter(|item| item["kind"] == kind)
            .collect()
    }

    /// The one terminal event: the last, the only one with an `outcome`, and true to the exit
    /// status.
    pub fn terminal(&self) -> Value {
        let events = self.events();
        let with_outcome = events.iter().filter(|event| event.get("outcome").is_some()).count();
        assert_eq!(with_outcome, 1, "terminal events in {}\n{}", self.text(), self.stderr);
        let last = events.last().cloned().unwrap_or_default();
        assert_eq!(last["type"], "stream.finished");
        assert_eq!(last["exit_code"].as_i64(), self.code.map(i64::from), "{last}");
        last
    }

    /// The execution the events belong to.
    pub fn exec(&self) -> String {
        let events = self.events();
        let exec = events.iter().find_map(|event| event["exec"].as_str());
        exec.unwrap_or_else(|| panic!("no execution in {}\n{}", self.text(), self.stderr))
            .to_owned()
    }
}

fn read_lines(from: impl Read + Send + 'static, most: usize) -> Receiver<Vec<u8>> {
    let (to, lines) = channel();
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        for _ in 0..most {
            let mut line = Vec::new();
            match from.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) if to.send(line).is_err() => break,
                Ok(_) => {}
            }
        }
    });
    lines
}

fn read_all(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

fn wait(mut child: Child) -> Receiver<ExitStatus> {
    let (to, exit) = channel();
    thread::spawn(move || {
        if let Ok(status) = child.wait() {
            let _ = to.send(status);
        }
    });
    exit
}
