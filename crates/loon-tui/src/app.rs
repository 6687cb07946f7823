//! The loop between the terminal, the runtime and the model. It sleeps unless something happens;
//! only while a turn runs does it wake once a second to show the time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use loon_api::{Command, Envelope};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use crate::event::{Action, Event, Exit, Input, JobDone};
use crate::highlight::{self, Job};
use crate::input::Inputs;
use crate::model::Model;
use crate::paint::Painter;
use crate::terminal::{Terminal, panicked};
use crate::transcript::Key;
use crate::update::update;
use crate::view;
use crate::{ScreenError, ScreenOptions};

/// Shortest time between two pictures that no key asked for.
const FRAME: Duration = Duration::from_millis(33);
/// How long the runtime may take to end after it was asked to.
const CLOSING: Duration = Duration::from_secs(2);
/// Events taken in between two pictures.
const BATCH: usize = 512;
/// Highlighted blocks that may wait to be shown.
const JOBS: usize = 64;

struct App {
    terminal: Terminal,
    painter: Painter,
    model: Model,
    buffer: Buffer,
    began: Instant,
    outbox: VecDeque<Command>,
    jobs: mpsc::Sender<JobDone>,
    highlighter: Option<std::sync::mpsc::Sender<Job<Key>>>,
    dirty: bool,
    drawn: Instant,
    ticked: u64,
    exit: Option<Exit>,
}

/// Shows the screen until the session's stream ends or the user or a signal ends it.
pub(crate) async fn run(
    mut options: watch::Receiver<ScreenOptions>,
    commands: mpsc::Sender<Command>,
    mut events: mpsc::Receiver<Arc<Envelope>>,
) -> Result<Exit, ScreenError> {
    let first = options.borrow_and_update().clone();
    let (jobs, mut jobs_done) = mpsc::channel(JOBS);
    let terminal = Terminal::enter(first.mouse).map_err(ScreenError::Terminal)?;
    let mut app = App::new(terminal, first, jobs);
    app.draw();
    let mut input = Inputs::start().map_err(ScreenError::Input)?;
    let mut signals = Signals::listen().map_err(ScreenError::Signals)?;
    let mut open = true;
    loop {
        if let Some(exit) = app.exit.take() {
            return Ok(exit);
        }
        let wake = app.wake_at();
        let sending = !app.outbox.is_empty();
        tokio::select! {
            biased;
            () = panicked() => return Ok(Exit::Panicked),
            caught = signals.next() => match caught {
                Caught::End(exit) => return Ok(exit),
                Caught::Resized => app.take(Event::Resize(0, 0)),
                Caught::Continued => app.come_back(),
            },
            inputs = input.next() => match inputs {
                Some(inputs) => app.answer(inputs),
                None => return Ok(Exit::HungUp),
            },
            event = events.recv(), if open => {
                open = event.is_some();
                app.take_events(event, &mut events);
            }
            Ok(()) = options.changed() => {
                let options = options.borrow_and_update().clone();
                app.restyle(options);
            }
            Some(done) = jobs_done.recv() => app.take(Event::JobDone(done)),
            permit = commands.reserve(), if sending => match permit {
                Ok(permit) => {
                    if let Some(command) = app.outbox.pop_front() {
                        permit.send(command);
                    }
                }
                Err(_) => app.outbox.clear(),
            },
            () = wait(wake), if wake.is_some() => app.woke(),
        }
        app.draw_if_due();
    }
}

async fn wait(until: Option<Instant>) {
    if let Some(until) = until {
        sleep_until(until).await;
    }
}

impl App {
    fn new(terminal: Terminal, options: ScreenOptions, jobs: mpsc::Sender<JobDone>) -> Self {
        let size = Terminal::size();
        let now = Instant::now();
        Self {
            terminal,
            painter: Painter::default(),
            model: Model::new(options, size),
            buffer: Buffer::empty(Rect::new(0, 0, size.0, size.1)),
            began: now,
            outbox: VecDeque::new(),
            jobs,
            highlighter: None,
            dirty: true,
            drawn: now,
            ticked: 0,
            exit: None,
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Takes over how the screen should look.
    fn restyle(&mut self, options: ScreenOptions) {
        let switched = self.terminal.use_mouse(options.mouse);
        self.check(switched);
        self.model.restyle(options);
        self.dirty = true;
    }

    /// Shows at once what the user did. What else waits to be shown keeps its time, so that a key
    /// costs the same whatever arrives meanwhile.
    fn answer(&mut self, inputs: Vec<Input>) {
        let waiting = self.dirty;
        for input in inputs {
            self.take(Event::Input(input));
        }
        if waiting {
            self.picture(false);
        } else {
            self.draw();
        }
    }

    /// Takes in an event and what waits behind it; without one, the runtime is gone.
    fn take_events(
        &mut self,
        first: Option<Arc<Envelope>>,
        events: &mut mpsc::Receiver<Arc<Envelope>>,
    ) {
        let Some(first) = first else {
            let exit = if self.model.closing.is_some() { Exit::Quit } else { Exit::Lost };
            self.exit.get_or_insert(exit);
            return;
        };
        self.take(Event::Runtime(first));
        for _ in 1..BATCH {
            match events.try_recv() {
                Ok(event) => self.take(Event::Runtime(event)),
                Err(_) => break,
            }
        }
    }

    fn take(&mut self, event: Event) {
        let event = match event {
            Event::Resize(..) => {
                let (columns, rows) = Terminal::size();
                Event::Resize(columns, rows)
            }
            event => event,
        };
        let now = self.now();
        let actions = update(&mut self.model, event, now);
        self.dirty = true;
        self.act(actions);
    }

    fn act(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send(command) => self.outbox.push_back(command),
                Action::Copy(text) => {
                    let written = self.terminal.copy(&text);
                    self.check(written);
                }
                Action::Highlight(owner, code) => self.highlight(owner, code),
                Action::Suspend => {
                    let suspended = self.terminal.suspend();
                    self.check(suspended);
                    self.model.repaint = true;
                }
                Action::Exit(exit) => {
                    self.exit.get_or_insert(exit);
                }
            }
        }
    }

    fn highlight(&mut self, owner: Key, code: crate::markdown::CodeBlock) {
        if self.highlighter.is_none() {
            let jobs = self.jobs.clone();
            let started = highlight::start(move |owner, id, highlight| {
                // The screen is gone: nobody needs it any more.
                let _ = jobs.blocking_send(JobDone { owner, id, highlight });
            });
            match started {
                Ok(sender) => self.highlighter = Some(sender),
                Err(error) => {
                    tracing::warn!(%error, "code stays without colours: no thread could be started");
                    return;
                }
            }
        }
        if let Some(sender) = &self.highlighter {
            let job = Job { owner, id: code.id, language: code.language, text: code.text };
            if sender.send(job).is_err() {
                self.highlighter = None;
            }
        }
    }

    /// The next moment at which something is due, if anything is.
    fn wake_at(&self) -> Option<Instant> {
        let frame = self.dirty.then(|| self.drawn + FRAME);
        let closing =
            self.model.closing.map(|since| self.began + Duration::from_millis(since) + CLOSING);
        // While a person is asked, no time is shown that could move on.
        let turn = self.model.session.turn.filter(|_| self.model.approvals.is_empty());
        let second = turn.map(|turn| {
            let running = self.ticked.max(turn.since).saturating_sub(turn.since);
            self.began + Duration::from_millis(turn.since + running / 1000 * 1000 + 1000)
        });
        [frame, closing, second].into_iter().flatten().min()
    }

    fn woke(&mut self) {
        let now = self.now();
        if self.model.closing.is_some_and(|since| now >= since + CLOSING.as_millis() as u64) {
            self.exit.get_or_insert(Exit::Quit);
        }
        if let Some(turn) = self.model.session.turn
            && now.saturating_sub(turn.since) / 1000
                > self.ticked.max(turn.since).saturating_sub(turn.since) / 1000
        {
            self.ticked = now;
            self.take(Event::Tick);
        }
    }

    fn draw_if_due(&mut self) {
        if self.dirty && self.drawn.elapsed() >= FRAME {
            self.draw();
        }
    }

    fn draw(&mut self) {
        self.dirty = false;
        self.drawn = Instant::now();
        self.picture(true);
    }

    fn picture(&mut self, fresh: bool) {
        let actions = self.model.prepare(fresh);
        self.act(actions);
        if std::mem::take(&mut self.model.repaint) {
            self.painter.forget();
        }
        let (columns, rows) = self.model.size;
        let area = Rect::new(0, 0, columns, rows);
        if self.buffer.area != area {
            self.buffer = Buffer::empty(area);
        }
        let cursor = view::draw(&self.model, &mut self.buffer);
        let bytes = self.painter.paint(&mut self.buffer, self.model.places.transcript, cursor);
        let written = self.terminal.write(bytes);
        self.check(written);
    }

    /// Someone else may have had the terminal.
    fn come_back(&mut self) {
        let resumed = self.terminal.resume();
        self.check(resumed);
        self.model.repaint = true;
        self.take(Event::Resize(0, 0));
    }

    /// A terminal that cannot be written to is gone.
    fn check(&mut self, written: std::io::Result<()>) {
        if let Err(error) = written {
            tracing::info!(%error, "the terminal is gone");
            self.exit.get_or_insert(Exit::HungUp);
        }
    }
}

/// What a signal means here.
enum Caught {
    End(Exit),
    Resized,
    Continued,
}

struct Signals {
    interrupt: Signal,
    abort: Signal,
    terminate: Signal,
    hangup: Signal,
    resize: Signal,
    resume: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            abort: signal(SignalKind::quit())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            resize: signal(SignalKind::window_change())?,
            resume: signal(SignalKind::from_raw(nix::sys::signal::Signal::SIGCONT as i32))?,
        })
    }

    async fn next(&mut self) -> Caught {
        tokio::select! {
            _ = self.interrupt.recv() => Caught::End(Exit::Interrupted),
            _ = self.abort.recv() => Caught::End(Exit::Aborted),
            _ = self.terminate.recv() => Caught::End(Exit::Terminated),
            _ = self.hangup.recv() => Caught::End(Exit::HungUp),
            _ = self.resize.recv() => Caught::Resized,
            _ = self.resume.recv() => Caught::Continued,
        }
    }
}
