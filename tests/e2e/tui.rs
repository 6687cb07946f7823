//! The full screen in a real terminal: what a person sees, presses and gets back.

use loon_testkit::{Home, Latch, Loon, ModelServer, Reply, Repo, Screen, Wire, key, text};
use nix::sys::signal::Signal;
use serde_json::json;

use crate::headless::is_alive;
use crate::scripts::{ask, bash, chat_setup, edit, read, small_repo};

const WIDE: (u16, u16) = (100, 30);

/// The state in the status line while it takes words.
const READY: &str = "● ready";

struct Session {
    server: ModelServer,
    home: Home,
    repo: Repo,
}

impl Session {
    fn new(server: ModelServer) -> Self {
        let (home, repo) = chat_setup(&server);
        Self { server, home, repo }
    }

    fn by_step(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::new(ModelServer::by_step(replies))
    }

    /// Opens the screen and waits until it takes words.
    fn open(&self, arguments: &[&str]) -> Screen {
        let screen = Screen::start(&self.home, self.repo.path(), arguments, WIDE);
        screen.wait_for(READY);
        screen
    }
}

/// Puts words into the composer and sends them. They come as a paste: keys that follow each other
/// faster than a hand can press them are held for one anyway, and an Enter among them sends nothing.
fn send(screen: &Screen, words: &str) {
    screen.paste(words);
    screen.wait_for(words);
    screen.press(key::ENTER);
}

fn quit(mut screen: Screen) {
    screen.press(key::CTRL_C);
    screen.press(key::CTRL_C);
    assert_eq!(screen.wait_exit(), Some(0));
}

fn count(haystack: &[u8], needle: &[u8]) -> usize {
    haystack.windows(needle.len()).filter(|window| *window == needle).count()
}

fn assert_given_back(screen: &Screen) {
    let raw = screen.raw();
    let last = |on: &[u8]| raw.windows(on.len()).rposition(|window| window == on);
    for mode in ["1049", "2004", "1000", "1002", "1003", "1006", "1004", "2026"] {
        let (on, off) = (format!("\x1b[?{mode}h"), format!("\x1b[?{mode}l"));
        assert!(last(on.as_bytes()) <= last(off.as_bytes()), "mode {mode} is left on");
    }
    assert!(last(b"\x1b[?1049l").is_some() && last(b"\x1b[?25h").is_some());
    assert!(last(b"\x1b[?25l") < last(b"\x1b[?25h"), "the cursor is left hidden");
    assert!(last(b"\x1b[?7l") < last(b"\x1b[?7h"), "lines are left without wrapping");
    assert_eq!(count(&raw, b"\x1b[>1u"), count(&raw, b"\x1b[<u"), "keyboard flags are left on");
    assert!(screen.is_cooked());
}

#[test]
fn the_first_screen_says_where_it_is_and_what_it_uses() {
    let session = Session::by_step([]);
    let screen = session.open(&[]);
    let shown = screen.wait_for("coder");
    assert!(shown.contains("main"), "the branch: {shown}");
    assert!(screen.snapshot().alternate_screen());
    assert!(screen.snapshot().bracketed_paste());
    quit(screen);
}

#[test]
fn a_prompt_streams_its_answer_and_shows_calls_and_diffs() {
    let latch = Latch::new();
    let session = Session::by_step([
        ask(read("a.txt")),
        ask(edit("a.txt", "two", "zwei")),
        text("The first half").hold(&latch).text(" and the **second** half."),
    ]);
    let screen = session.open(&["--mode", "auto"]);
    send(&screen, "change the line");
    screen.wait_for("The first half");
    assert!(!screen.contents().contains("second"));
    latch.release();
    let shown = screen.wait_for("and the second half.");
    assert!(shown.contains("change the line"), "{shown}");
    let line =
        |words: &[&str]| shown.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(line(&["read", "a.txt"]) && line(&["edit", "a.txt"]), "{shown}");
    assert!(line(&["-", "two"]) && line(&["+", "zwei"]), "{shown}");
    assert_eq!(session.repo.read("a.txt"), "one\nzwei\nthree\n");
    quit(screen);
}

#[test]
fn a_call_that_asks_runs_after_yes() {
    let session = Session::by_step([ask(bash("touch made.txt")), text("It is made.")]);
    let screen = session.open(&[]);
    send(&screen, "make it");
    screen.wait_for("touch made.txt");
    assert!(!session.repo.has("made.txt"));
    screen.press_until("y", "the answer", |shown| shown.contains("It is made."));
    assert!(session.repo.has("made.txt"));
    quit(screen);
}

#[test]
fn a_call_that_asks_does_not_run_after_no_and_the_model_reads_why() {
    let session = Session::by_step([ask(bash("touch made.txt")), text("As you wish.")]);
    let screen = session.open(&[]);
    send(&screen, "make it");
    screen.wait_for("once");
    screen.press_until("n", "the question why", |shown| !shown.contains("once"));
    screen.paste("not today");
    screen.press_until(key::ENTER, "the answer", |shown| shown.contains("As you wish."));
    assert!(!session.repo.has("made.txt"));
    assert!(session.server.last_request().last_answer().contains("not today"));
    quit(screen);
}

#[test]
fn words_sent_while_a_turn_runs_reach_its_next_step() {
    let latch = Latch::new();
    let session = Session::by_step([
        text("Looking").hold(&latch).call("read", &json!({"path": "a.txt"})),
        text("Seen both."),
    ]);
    let screen = session.open(&[]);
    send(&screen, "look");
    screen.wait_for("Looking");
    latch.wait_reached(1);
    send(&screen, "mind the gap");
    screen.wait_for("next step  mind the gap");
    latch.release();
    screen.wait_for("Seen both.");
    assert_eq!(session.server.last_request().user_texts(), ["look", "mind the gap"]);
    quit(screen);
}

#[test]
fn an_interrupt_stops_the_turn_at_once_and_keeps_the_screen() {
    let session = Session::new(ModelServer::queue([text("Slowly").stall(), text("Quickly.")]));
    let screen = session.open(&[]);
    send(&screen, "go");
    screen.wait_for("Slowly");
    screen.press(key::CTRL_C);
    session.server.wait_abandoned(0);
    screen.wait_for("stopped by you");
    send(&screen, "again");
    screen.wait_for("Quickly.");
    quit(screen);
}

#[test]
fn pasted_lines_are_one_prompt_exactly_as_they_were() {
    let session = Session::by_step([text("Got it.")]);
    let screen = session.open(&[]);
    let pasted: String = (1..40).fold(String::new(), |text, n| format!("{text}line {n}\n"));
    screen.paste("see: ");
    screen.wait_for("see:");
    screen.paste(&pasted);
    screen.wait_for("39 lines");
    screen.press(key::ENTER);
    screen.wait_for("Got it.");
    let sent = session.server.last_request().user_texts().concat();
    assert_eq!(sent.trim_end(), format!("see: {}", pasted.trim_end()));
    quit(screen);
}

#[test]
fn words_are_typed_and_corrected() {
    let session = Session::by_step([text("Read.")]);
    let screen = session.open(&[]);
    for letter in ["h", "a", "l", "l", "o"] {
        screen.press(letter);
    }
    screen.wait_for("hallo");
    for _ in 0..4 {
        screen.press(key::BACKSPACE);
    }
    screen.wait_gone("hallo");
    screen.press("ello");
    screen.wait_for("hello");
    screen.press_until(key::ENTER, "the answer", |shown| shown.contains("Read."));
    assert_eq!(session.server.last_request().user_texts().concat().trim_end(), "hello");
    quit(screen);
}

#[test]
fn nothing_from_outside_reaches_the_terminal_raw() {
    let hostile = "before\x1b[2Jafter\x1b]0;title\x07 \u{202e}x";
    let session = Session::by_step([ask(bash("printf '\\033[31mred\\033[2J\\n'")), text(hostile)]);
    let screen = session.open(&["--mode", "bypass"]);
    send(&screen, "go");
    screen.wait_for("before");
    screen.wait_for("after");
    let raw = screen.raw();
    assert_eq!(count(&raw, b"\x1b[2Jafter"), 0);
    assert_eq!(count(&raw, b"\x1b]0;title"), 0);
    assert_eq!(count(&raw, "\u{202e}".as_bytes()), 0);
    quit(screen);
}

#[test]
fn another_size_shows_the_same_words_anew() {
    let words = "alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike";
    let session = Session::by_step([text(words)]);
    let screen = session.open(&[]);
    send(&screen, "spell");
    screen.wait_for("golf hotel");
    for (columns, rows) in [(40, 20), (120, 40), (30, 10), (100, 30)] {
        screen.resize(columns, rows);
        screen.wait_until("all words", |shown| {
            let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            flat.contains("lima") && flat.contains("mike")
        });
        let widest = screen.contents().lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(usize::from(columns)));
    }
    quit(screen);
}

#[test]
fn a_very_small_terminal_still_works() {
    let session = Session::by_step([text("Small answer.")]);
    let screen = Screen::start(&session.home, session.repo.path(), &[], (30, 10));
    screen.wait_for("ready");
    send(&screen, "hello");
    screen.wait_for("Small answer.");
    quit(screen);
}

#[test]
fn without_colour_there_is_none() {
    let session = Session::by_step([text("Plain `code` and **bold**.")]);
    let env = [("NO_COLOR", "1")];
    let screen = Screen::start_with(&session.home, session.repo.path(), &[], &env, WIDE);
    screen.wait_for(READY);
    send(&screen, "go");
    screen.wait_for("Plain code and bold.");
    let raw = String::from_utf8_lossy(&screen.raw()).into_owned();
    let coloured =
        raw.split("\x1b[").skip(1).filter_map(|rest| rest.split_once('m')).any(|(codes, _)| {
            codes.split(';').any(|code| {
                matches!(code.parse::<u8>(), Ok(30..=38 | 40..=48 | 90..=97 | 100..=107))
            })
        });
    assert!(!coloured);
    quit(screen);
}

#[test]
fn the_terminal_is_given_back_on_quitting_and_on_signals() {
    let session = Session::by_step([]);
    let mut screen = session.open(&[]);
    assert!(!screen.is_cooked());
    screen.press(key::CTRL_C);
    screen.press(key::CTRL_C);
    assert_eq!(screen.wait_exit(), Some(0));
    assert_given_back(&screen);
    let signals = [
        (Signal::SIGTERM, 143),
        (Signal::SIGINT, 130),
        (Signal::SIGHUP, 129),
        (Signal::SIGQUIT, 131),
    ];
    for (signal, code) in signals {
        let mut screen = session.open(&[]);
        screen.signal(signal);
        assert_eq!(screen.wait_exit(), Some(code), "{signal}");
        assert_given_back(&screen);
    }
}

#[test]
fn a_session_is_there_again_after_quitting() {
    let session = Session::by_step([text("The first answer."), text("The second answer.")]);
    let screen = session.open(&[]);
    send(&screen, "first question");
    screen.wait_for("The first answer.");
    quit(screen);
    let screen = Screen::start(&session.home, session.repo.path(), &["--continue"], WIDE);
    let shown = screen.wait_for("The first answer.");
    assert!(shown.contains("first question"), "{shown}");
    send(&screen, "second question");
    screen.wait_for("The second answer.");
    let asked = session.server.last_request().user_texts();
    assert_eq!(asked, ["first question", "second question"]);
    quit(screen);
}

#[test]
fn a_prompt_on_the_command_line_is_sent_at_once() {
    let session = Session::by_step([text("Straight away.")]);
    let screen = Screen::start(&session.home, session.repo.path(), &["begin now"], WIDE);
    screen.wait_for("Straight away.");
    assert_eq!(session.server.last_request().user_texts(), ["begin now"]);
    quit(screen);
}

#[test]
fn a_session_begun_without_a_screen_is_listed_and_opened() {
    let session = Session::by_step([text("Answer 0."), text("Answer 1.")]);
    let exec = Loon::exec(&session.home, session.repo.path(), ["begun elsewhere"]).run().exec();
    let screen =
        Screen::start(&session.home, session.repo.path(), &["sessions", "resume", &exec], WIDE);
    screen.wait_for("Answer 0.");
    quit(screen);
}

#[test]
fn another_session_is_picked_from_the_list() {
    let session = Session::by_step([text("Answer 0."), text("Answer 1.")]);
    Loon::exec(&session.home, session.repo.path(), ["begun elsewhere"]).run();
    let screen = session.open(&[]);
    send(&screen, "/resume");
    screen.wait_for("begun elsewhere");
    screen.press("begun");
    screen.wait_gone("untitled");
    screen.press(key::ENTER);
    screen.wait_for("Answer 0.");
    send(&screen, "and on");
    screen.wait_for("Answer 1.");
    assert_eq!(session.server.last_request().user_texts(), ["begun elsewhere", "and on"]);
    quit(screen);
}

#[test]
fn a_session_that_another_process_writes_is_refused_with_its_number() {
    let session = Session::new(ModelServer::queue([text("slow").stall()]));
    let mut other = Loon::exec(&session.home, session.repo.path(), ["go"]).start();
    other.wait_type("item.delta");
    let mut screen = Screen::start(&session.home, session.repo.path(), &["--continue"], WIDE);
    assert_eq!(screen.wait_exit(), Some(1));
    let shown = String::from_utf8_lossy(&screen.raw()).into_owned();
    assert!(shown.contains(&other.pid().to_string()), "{shown}");
    assert_given_back(&screen);
}

#[test]
fn leaving_and_signals_end_the_command_that_runs() {
    for signal in [None, Some(Signal::SIGTERM), Some(Signal::SIGHUP)] {
        let session = Session::by_step([ask(bash(
            "echo $$ > pid; echo up and running | rev; exec sleep 300",
        ))]);
        let mut screen = session.open(&["--mode", "bypass"]);
        send(&screen, "go");
        screen.wait_for("gninnur dna pu");
        match signal {
            Some(signal) => screen.signal(signal),
            None => {
                screen.press(key::CTRL_C);
                screen.press(key::CTRL_C);
            }
        }
        screen.wait_exit();
        assert!(!is_alive(&session.repo.read("pid")), "{signal:?}");
        let verified = Loon::new(&session.home, session.repo.path())
            .args(["sessions", "verify", "--all"])
            .run();
        assert_eq!(verified.code, Some(0), "{signal:?}: {}", verified.stderr);
    }
}

#[test]
fn always_writes_the_rule_that_is_shown_and_does_not_ask_again() {
    let session = Session::by_step([
        ask(bash("touch one.txt")),
        ask(bash("touch one.txt")),
        text("Touched twice."),
        ask(bash("touch one.txt")),
        text("And again."),
    ]);
    // In a folder nobody trusts the rule would hold for this session only.
    let trusted = Loon::new(&session.home, session.repo.path()).args(["trust"]).run();
    assert_eq!(trusted.code, Some(0), "{}", trusted.stderr);
    let screen = session.open(&[]);
    send(&screen, "touch it");
    let shown = screen.wait_for("always");
    assert!(shown.contains("allow  bash \"touch one.txt\""), "{shown}");
    screen.press_until("a", "the answer", |shown| shown.contains("Touched twice."));
    quit(screen);
    let finished = Loon::exec(&session.home, session.repo.path(), ["--continue", "again"]).run();
    let kept = session.repo.git(&["status", "--short", "--untracked-files=all"]);
    assert_eq!(finished.terminal()["message"], "And again.", "{kept}\n{}", finished.text());
    assert_eq!(finished.of_type("approval.requested").len(), 0);
}

#[test]
fn several_screens_of_one_repository_do_not_disturb_each_other() {
    let server =
        ModelServer::answering(|request| text(format!("Re: {}.", request.user_texts().join("+"))));
    let (home, repo) = (Home::with_server(&server, Wire::Responses), small_repo());
    let screens = ["one", "two"].map(|words| {
        let screen = Screen::start(&home, repo.path(), &[], WIDE);
        screen.wait_for(READY);
        send(&screen, words);
        (screen, words)
    });
    for (screen, words) in screens {
        screen.wait_for(&format!("Re: {words}."));
        quit(screen);
    }
}
