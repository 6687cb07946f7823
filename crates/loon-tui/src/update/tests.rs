//! Key sequences against the model, with the runtime played by hand.

mod agents;
mod customs;
mod sessions;

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use loon_api::command::ApprovalScope;
use loon_api::event::{
    ApprovalRequested, ItemCompleted, PromptQueued, QueueReturned, RecordChanged, ResourcesUpdated,
    RewindPreviewed, SessionOpened, SessionRewound, SessionState, SessionsListed, TurnStarted,
};
use loon_api::{
    AgentEvent, Approval, ApprovalId, At, Bounds, ChecklistStep, Command, Cost, Envelope,
    ExecutionId, Item, ItemBody, ItemId, Mode, PermissionRule, RecordChange, SessionAccess,
    SessionSummary, Usage, WorkStatus,
};

use super::update;
use crate::event::{Action, Event, Input};
use crate::model::Model;
use crate::popup::Kind;
use crate::{ScreenOptions, Theme};

struct Screen {
    model: Model,
    now: u64,
}

impl Screen {
    fn new() -> Self {
        let options = ScreenOptions {
            theme: Theme::default(),
            ascii: false,
            color: true,
            mouse: false,
            placeholder: "what next?".to_owned(),
            spinner: "working".to_owned(),
        };
        let mut screen = Self { model: Model::new(options, (80, 24)), now: 1_000 };
        let session = SessionState {
            cwd: "/work".to_owned(),
            model: Some("lab/coder".to_owned()),
            mode: Mode::Default,
            branch: None,
            title: None,
            resumed: false,
            items: Vec::new(),
            more: false,
            queued: Vec::new(),
            usage: Usage::default(),
            cost: Cost::default(),
            record: loon_api::WorkingRecord::default(),
            ultra: false,
            watched: None,
        };
        screen.tell(SessionOpened { session });
        screen
    }

    fn working() -> Self {
        let mut screen = Self::new();
        screen.tell(TurnStarted {
            model: "lab/coder".to_owned(),
            mode: Mode::Default,
            branch: None,
        });
        screen
    }

    fn take(&mut self, event: Event) -> Vec<Action> {
        let actions = update(&mut self.model, event, self.now);
        self.model.prepare(true);
        actions
    }

    fn tell(&mut self, event: impl Into<AgentEvent>) -> Vec<Action> {
        self.tell_of(ExecutionId::generate(), event)
    }

    fn tell_of(&mut self, exec: ExecutionId, event: impl Into<AgentEvent>) -> Vec<Action> {
        let envelope = Envelope {
            v: 1,
            seq: None,
            at: At::from_unix_ms(0),
            exec,
            turn: None,
            event: event.into(),
        };
        self.take(Event::Runtime(Arc::new(envelope)))
    }

    /// A key after a pause that a person would make.
    fn press(&mut self, code: KeyCode) -> Vec<Action> {
        self.press_with(code, KeyModifiers::NONE)
    }

    fn press_with(&mut self, code: KeyCode, held: KeyModifiers) -> Vec<Action> {
        self.now += 100;
        self.take(Event::Input(Input::Key(KeyEvent::new(code, held))))
    }

    fn ctrl(&mut self, c: char) -> Vec<Action> {
        self.press_with(KeyCode::Char(c), KeyModifiers::CONTROL)
    }

    fn type_text(&mut self, text: &str) {
        for c in text.chars() {
            self.press(KeyCode::Char(c));
        }
    }

    fn draft(&self) -> String {
        self.model.composer.text()
    }

    fn ask(&mut self, id: &str) {
        self.ask_with(id, Some(rule("git push origin")));
    }

    fn ask_with(&mut self, id: &str, always: Option<PermissionRule>) {
        let approval = Approval {
            id: ApprovalId::new(id),
            item: ItemId::call(1, 0, 0),
            tool: "bash".to_owned(),
            arguments: serde_json::Value::Null,
            detail: "git push origin main".to_owned(),
            reasons: Vec::new(),
            cwd: String::new(),
            always,
        };
        self.tell(ApprovalRequested { approval });
    }
}

#[test]
fn what_no_rule_fits_is_allowed_once_or_not_at_all() {
    let mut screen = Screen::new();
    screen.ask_with("a1", None);
    screen.now += 1_000;
    for longer in ['s', 'a'] {
        assert_eq!(screen.press(KeyCode::Char(longer)), []);
        assert_eq!(
            screen.model.hint.as_deref(),
            Some("no rule fits this call alone: allow it once")
        );
    }
    let approval = ApprovalId::new("a1");
    let once = Command::Approve { approval, scope: ApprovalScope::Once, rule: None };
    assert_eq!(screen.press(KeyCode::Char('y')), sent(once));
}

fn rule(prefix: &str) -> PermissionRule {
    PermissionRule {
        tool: "bash".to_owned(),
        path_prefix: None,
        command_prefix: Some(prefix.to_owned()),
        host: None,
    }
}

fn sent(command: Command) -> Vec<Action> {
    vec![Action::Send(command)]
}

fn open(exec: ExecutionId, access: SessionAccess) -> Command {
    Command::OpenSession { exec: Some(exec), access }
}

fn prompt(text: &str) -> Vec<Action> {
    sent(Command::Prompt { text: text.to_owned() })
}

#[test]
fn enter_sends_and_other_enters_break_the_line() {
    let mut screen = Screen::new();
    screen.type_text("one");
    screen.press_with(KeyCode::Enter, KeyModifiers::ALT);
    screen.type_text("two");
    screen.ctrl('j');
    screen.type_text("three");
    assert_eq!(screen.press(KeyCode::Enter), prompt("one\ntwo\nthree"));
    assert_eq!(screen.draft(), "");
    assert_eq!(screen.press(KeyCode::Enter), []);
    screen.press(KeyCode::Up);
    assert_eq!(screen.draft(), "one\ntwo\nthree");
}

#[test]
fn while_it_works_enter_steers_tab_queues_and_escape_stops() {
    let mut screen = Screen::working();
    screen.type_text("now");
    assert_eq!(screen.press(KeyCode::Enter), sent(Command::Steer { text: "now".to_owned() }));
    screen.type_text("later");
    assert_eq!(screen.press(KeyCode::Tab), prompt("later"));
    screen.type_text("kept");
    assert_eq!(screen.press(KeyCode::Esc), sent(Command::Interrupt));
    assert!(screen.model.session.turn.unwrap().stopping);
    assert_eq!(screen.draft(), "kept");
}

#[test]
fn waiting_prompts_come_back_above_the_draft() {
    let mut screen = Screen::working();
    screen.tell(PromptQueued { text: "first".to_owned(), steer: false });
    screen.tell(PromptQueued { text: "second".to_owned(), steer: true });
    assert_eq!(screen.press(KeyCode::Up), sent(Command::Unqueue));
    screen.type_text("mine");
    screen.tell(QueueReturned { texts: vec!["first".to_owned(), "second".to_owned()] });
    assert_eq!(screen.draft(), "first\n\nsecond\n\nmine");
    assert!(screen.model.session.queued.is_empty());
}

#[test]
fn a_queued_prompt_leaves_the_queue_with_its_item() {
    let mut screen = Screen::working();
    screen.tell(PromptQueued { text: "first".to_owned(), steer: false });
    let body = ItemBody::UserMessage { text: "first".to_owned(), steer: false };
    screen.tell(ItemCompleted { item: Item { id: ItemId::user(2, 0), turn: 2, body } });
    assert!(screen.model.session.queued.is_empty());
}

#[test]
fn keys_in_a_burst_are_a_paste_and_never_send() {
    let mut screen = Screen::new();
    for c in "rm -rf".chars() {
        screen.take(Event::Input(Input::Key(KeyEvent::from(KeyCode::Char(c)))));
    }
    let enter = Event::Input(Input::Key(KeyEvent::from(KeyCode::Enter)));
    assert_eq!(screen.take(enter), []);
    assert_eq!(screen.draft(), "rm -rf\n");
    assert_eq!(screen.press(KeyCode::Enter), prompt("rm -rf\n"));
}

#[test]
fn enter_right_after_a_marked_paste_sends() {
    let mut screen = Screen::new();
    screen.type_text("look at ");
    screen.take(Event::Input(Input::Paste("src".to_owned())));
    assert_eq!(screen.press(KeyCode::Enter), prompt("look at src"));
}

#[test]
fn a_paste_never_sends() {
    let mut screen = Screen::new();
    assert_eq!(screen.take(Event::Input(Input::Paste("a\nb\n".to_owned()))), []);
    assert_eq!(screen.draft(), "a\nb\n");
}

#[test]
fn ctrl_c_clears_then_stops_and_twice_leaves() {
    let mut screen = Screen::working();
    screen.type_text("half a thought");
    assert_eq!(screen.ctrl('c'), []);
    assert_eq!(screen.draft(), "");
    screen.now += 3_000;
    assert_eq!(screen.ctrl('c'), sent(Command::Interrupt));
    assert_eq!(screen.ctrl('c'), sent(Command::Close));
    assert!(screen.model.closing.is_some());
    screen.now += 3_000;
    let mut idle = Screen::new();
    idle.type_text("half a thought");
    idle.ctrl('c');
    idle.press(KeyCode::Up);
    assert_eq!(idle.draft(), "half a thought");
}

#[test]
fn ctrl_d_leaves_only_with_an_empty_draft() {
    let mut screen = Screen::new();
    screen.type_text("x");
    assert_eq!(screen.ctrl('d'), []);
    screen.press(KeyCode::Backspace);
    assert_eq!(screen.ctrl('d'), sent(Command::Close));
}

#[test]
fn a_new_sheet_takes_no_key_for_a_third_of_a_second() {
    let mut screen = Screen::working();
    screen.ask("a1");
    assert_eq!(screen.press(KeyCode::Char('y')), []);
    screen.now += 300;
    let approve = Command::Approve {
        approval: ApprovalId::new("a1"),
        scope: ApprovalScope::Once,
        rule: None,
    };
    assert_eq!(screen.press(KeyCode::Char('y')), sent(approve));
    assert!(screen.model.approvals.is_empty());
    assert_eq!(screen.draft(), "");
}

#[test]
fn words_that_were_being_typed_go_on_into_the_draft() {
    let mut screen = Screen::working();
    screen.type_text("pla");
    screen.ask("a1");
    screen.type_text("y on any");
    assert_eq!(screen.draft(), "play on any");
    assert_eq!(screen.model.approvals.len(), 1);
}

#[test]
fn the_rule_is_edited_before_it_is_kept() {
    let mut screen = Screen::working();
    screen.ask("a1");
    screen.now += 400;
    screen.press(KeyCode::Char('e'));
    for _ in 0.." origin".len() {
        screen.press(KeyCode::Backspace);
    }
    assert_eq!(screen.press(KeyCode::Enter), []);
    let approve = Command::Approve {
        approval: ApprovalId::new("a1"),
        scope: ApprovalScope::Project,
        rule: Some(rule("git push")),
    };
    assert_eq!(screen.press(KeyCode::Char('a')), sent(approve));
}

#[test]
fn a_no_carries_its_reason() {
    let mut screen = Screen::working();
    screen.ask("a1");
    screen.now += 400;
    screen.press(KeyCode::Char('n'));
    screen.type_text("not today");
    let deny =
        Command::Deny { approval: ApprovalId::new("a1"), reason: Some("not today".to_owned()) };
    assert_eq!(screen.press(KeyCode::Enter), sent(deny));
}

#[test]
fn several_requests_are_a_queue_that_can_be_put_aside() {
    let mut screen = Screen::working();
    screen.ask("a1");
    screen.ask("a2");
    screen.now += 400;
    screen.press(KeyCode::Tab);
    assert_eq!(screen.model.approvals.number(), 2);
    screen.press(KeyCode::Esc);
    assert!(screen.model.approvals.is_hidden());
    screen.type_text("draft");
    assert_eq!(screen.draft(), "draft");
    screen.ctrl('r');
    let approve = Command::Approve {
        approval: ApprovalId::new("a2"),
        scope: ApprovalScope::Session,
        rule: Some(rule("git push origin")),
    };
    assert_eq!(screen.press(KeyCode::Char('s')), sent(approve));
    assert_eq!(screen.model.approvals.len(), 1);
}

#[test]
fn unknown_commands_are_said_and_not_sent() {
    let mut screen = Screen::new();
    screen.type_text("/frobnicate");
    assert_eq!(screen.press(KeyCode::Enter), []);
    assert_eq!(
        screen.model.hint.as_deref(),
        Some("there is no command /frobnicate: Ctrl+K lists them")
    );
    assert_eq!(screen.draft(), "/frobnicate");
    screen.ctrl('u');
    screen.type_text("/usr/bin is full");
    assert_eq!(screen.press(KeyCode::Enter), prompt("/usr/bin is full"));
}

#[test]
fn commands_run_from_the_draft_and_from_the_palette() {
    let mut screen = Screen::new();
    screen.type_text("/model lab/small");
    assert_eq!(
        screen.press(KeyCode::Enter),
        sent(Command::SetModel { model: "lab/small".to_owned() })
    );
    screen.type_text("draft");
    screen.ctrl('k');
    assert_eq!(screen.model.layers.last().unwrap().kind, Kind::Palette);
    screen.type_text("resume");
    assert_eq!(screen.press(KeyCode::Enter), sent(Command::ListSessions { all: false }));
    assert_eq!(screen.model.layers.last().unwrap().kind, Kind::Sessions);
    let exec = ExecutionId::generate();
    let session = SessionSummary {
        title: "pager".to_owned(),
        cwd: "/work".to_owned(),
        turns: 2,
        ..SessionSummary::begun(exec, At::from_unix_ms(0))
    };
    screen.tell(SessionsListed { sessions: vec![session] });
    assert_eq!(screen.press(KeyCode::Enter), sent(open(exec, SessionAccess::Write)));
    assert_eq!(screen.draft(), "draft");
}

#[test]
fn modes_cycle_without_ever_reaching_bypass() {
    let mut screen = Screen::new();
    let mut seen = Vec::new();
    for _ in 0..3 {
        screen.press(KeyCode::BackTab);
        seen.push(screen.model.session.mode);
    }
    assert_eq!(seen, [Mode::Auto, Mode::Plan, Mode::Default]);
    screen.type_text("/mode bypass");
    assert_eq!(screen.press(KeyCode::Enter), sent(Command::SetMode { mode: Mode::Bypass }));
}

#[test]
fn rewinding_puts_the_exact_text_into_the_draft() {
    let mut screen = Screen::new();
    let body = |text: &str| ItemBody::UserMessage { text: text.to_owned(), steer: false };
    screen
        .tell(ItemCompleted { item: Item { id: ItemId::user(1, 0), turn: 1, body: body("one") } });
    screen.tell(ItemCompleted {
        item: Item { id: ItemId::user(2, 0), turn: 2, body: body("two\nlines") },
    });
    screen.press(KeyCode::Esc);
    screen.press(KeyCode::Esc);
    let to = ItemId::user(2, 0);
    let look = Command::PreviewRewind { to: to.clone() };
    assert_eq!(screen.press(KeyCode::Enter), sent(look));
    // No file is concerned: there is nothing to choose.
    assert_eq!(
        screen.tell(RewindPreviewed { to: to.clone(), detail: None }),
        sent(Command::Rewind { to, files: false })
    );
    screen.tell(SessionRewound {
        to: ItemId::user(2, 0),
        text: "two\nlines".to_owned(),
        record: loon_api::WorkingRecord::default(),
    });
    assert_eq!(screen.draft(), "two\nlines");
    assert_eq!(screen.model.transcript.user_messages().count(), 1);
}

/// A screen that asks how far to go back to its only message.
fn going_back() -> (Screen, ItemId) {
    let mut screen = Screen::new();
    let to = ItemId::user(1, 0);
    let body = ItemBody::UserMessage { text: "one".to_owned(), steer: false };
    screen.tell(ItemCompleted { item: Item { id: to.clone(), turn: 1, body } });
    screen.type_text("/rewind");
    screen.press(KeyCode::Enter);
    screen.press(KeyCode::Enter);
    let detail = Some("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-new\n+old\n".to_owned());
    assert_eq!(screen.tell(RewindPreviewed { to: to.clone(), detail }), []);
    (screen, to)
}

#[test]
fn files_go_back_only_when_that_is_chosen() {
    for (code, files) in
        [(KeyCode::Char('c'), false), (KeyCode::Char('f'), true), (KeyCode::Enter, false)]
    {
        let (mut screen, to) = going_back();
        assert_eq!(screen.press(code), [], "the sheet has just appeared");
        screen.now += 400;
        assert_eq!(screen.press(code), sent(Command::Rewind { to, files }));
        assert!(screen.model.rewind.is_none());
    }
    let (mut screen, to) = going_back();
    screen.now += 400;
    screen.press(KeyCode::Down);
    assert_eq!(screen.press(KeyCode::Enter), sent(Command::Rewind { to, files: true }));
}

#[test]
fn escape_takes_nothing_back_and_late_answers_are_passed_over() {
    let (mut screen, to) = going_back();
    assert_eq!(screen.press(KeyCode::Esc), []);
    assert!(screen.model.rewind.is_none());
    assert_eq!(screen.tell(RewindPreviewed { to, detail: None }), []);
    screen.type_text("cf");
    assert_eq!(screen.draft(), "cf");
    let (mut screen, _) = going_back();
    let other = RewindPreviewed { to: ItemId::user(9, 0), detail: None };
    assert_eq!(screen.tell(other), []);
    assert!(screen.model.shown_rewind().is_some());
}

#[test]
fn a_request_for_a_decision_comes_before_going_back() {
    let (mut screen, to) = going_back();
    screen.ask("a1");
    screen.now += 400;
    let approve = Command::Approve {
        approval: ApprovalId::new("a1"),
        scope: ApprovalScope::Once,
        rule: None,
    };
    assert_eq!(screen.press(KeyCode::Char('y')), sent(approve));
    assert_eq!(screen.press(KeyCode::Char('f')), sent(Command::Rewind { to, files: true }));
}

#[test]
fn plan_mode_goal_and_undo_have_commands() {
    let mut screen = Screen::new();
    let mut run = |text: &str| {
        screen.type_text(text);
        screen.press(KeyCode::Enter)
    };
    let plan = || sent(Command::SetMode { mode: Mode::Plan });
    assert_eq!(run("/plan off"), []);
    assert_eq!(run("/plan"), plan());
    assert_eq!(run("/plan on"), plan());
    assert_eq!(run("/plan"), sent(Command::LeavePlan));
    assert_eq!(run("/plan off"), sent(Command::LeavePlan));
    assert_eq!(run("/undo"), sent(Command::Undo { redo: false }));
    assert_eq!(run("/redo"), sent(Command::Undo { redo: true }));
    let goal = Some("ship the pager".to_owned());
    assert_eq!(run("/goal ship the pager"), sent(Command::SetGoal { goal }));
    assert_eq!(run("/goal off"), sent(Command::SetGoal { goal: None }));
    assert_eq!(run("/goal"), []);
    assert_eq!(screen.model.hint.as_deref(), Some("there is no goal yet: /goal TEXT sets one"));
    let change = RecordChange::Goal { goal: Some("ship the pager".to_owned()) };
    screen.tell(RecordChanged { change });
    assert_eq!(screen.model.hint.as_deref(), Some("the goal is set"));
    screen.type_text("/goal");
    screen.press(KeyCode::Enter);
    let popup = screen.model.layers.last().unwrap();
    assert_eq!(popup.selected_row().unwrap().about, "ship the pager");
}

#[test]
fn the_panel_is_a_list_where_there_is_no_room_for_it() {
    let mut screen = Screen::new();
    let steps = |done: WorkStatus| RecordChange::Checklist {
        steps: vec![
            ChecklistStep { step: "read".to_owned(), status: done },
            ChecklistStep { step: "write".to_owned(), status: WorkStatus::InProgress },
        ],
    };
    screen.tell(RecordChanged { change: steps(WorkStatus::Pending) });
    screen.ctrl('t');
    let popup = screen.model.layers.last().unwrap();
    assert_eq!(popup.kind, Kind::Record);
    assert_eq!(popup.selected_row().unwrap().label, "◐ write");
    screen.tell(RecordChanged { change: steps(WorkStatus::Completed) });
    let popup = screen.model.layers.last().unwrap();
    assert_eq!(popup.selected(), 1);
    assert_eq!(popup.shown_rows().next().unwrap().label, "● read");
    screen.press(KeyCode::Enter);
    assert!(screen.model.layers.is_empty());
    screen.take(Event::Resize(110, 30));
    assert_eq!(screen.model.panel_width(), 30);
    screen.ctrl('t');
    assert_eq!(screen.model.panel_width(), 0);
    screen.type_text("/panel");
    screen.press(KeyCode::Enter);
    assert_eq!(screen.model.panel_width(), 30);
    screen.tell(RecordChanged { change: RecordChange::Checklist { steps: Vec::new() } });
    assert_eq!(screen.model.panel_width(), 0, "it would be empty");
}

#[test]
fn themes_show_as_the_selection_moves_and_escape_goes_back() {
    let mut screen = Screen::new();
    screen.type_text("/theme");
    screen.press(KeyCode::Enter);
    screen.press(KeyCode::Down);
    assert_eq!(screen.model.theme.name(), "loom-light");
    screen.press(KeyCode::Esc);
    assert_eq!(screen.model.theme.name(), "loom-dark");
}

#[test]
fn what_a_child_used_counts_with_the_session() {
    let mut screen = Screen::working();
    let usage = Usage { input_tokens: Some(40), output_tokens: Some(2), ..Usage::default() };
    let bounds = Bounds { max_tokens: Some(1_000), ..Bounds::default() };
    screen.tell(ResourcesUpdated {
        tokens: 42,
        usage,
        cost: Cost { unpriced: 1, ..Cost::default() },
        ms: 5,
        count: 1,
        requests: 1,
        exceeded: false,
        bounds,
    });
    assert_eq!(screen.model.session.budget_words(), ["42 of 1.0k tokens"]);
    screen.type_text("/budget");
    screen.press(KeyCode::Enter);
    assert_eq!(
        screen.model.hint.as_deref(),
        Some("spent an unknown sum, 42 of 1.0k tokens, 1 request: /budget AMOUNT sets the bound")
    );
}

#[test]
fn k071_the_first_key_of_a_prompt_warms_the_way_to_the_model_and_no_other() {
    let mut screen = Screen::new();
    assert_eq!(screen.press(KeyCode::Char('g')), [Action::Send(Command::Warm)]);
    assert_eq!(screen.press(KeyCode::Char('o')), []);
    let mut working = Screen::working();
    assert_eq!(working.press(KeyCode::Char('g')), []);
}
