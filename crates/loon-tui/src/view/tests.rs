//! Whole screens, as a terminal shows them after the painter's bytes.

mod streaming;

use std::num::NonZero;
use std::sync::Arc;

use loon_api::event::{
    ApprovalRequested, BudgetReached, DeltaKind, ItemCompleted, ItemDelta, ItemStarted,
    MeterUpdated, PromptQueued, RecordChanged, ResourcesUpdated, RewindPreviewed, SessionOpened,
    SessionState, TurnStarted,
};
use loon_api::{
    AgentEvent, Approval, ApprovalId, At, Bounds, CallId, ChecklistStep, Cost, Envelope,
    ExecutionId, FileChange, Item, ItemBody, ItemId, Mode, PermissionRule, ReachedBound,
    RecordChange, Task, ToolCallItem, ToolCallStatus, ToolResult, Usage, WorkStatus,
};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::event::Event;
use crate::model::Model;
use crate::paint::Painter;
use crate::update::update;
use crate::{ScreenOptions, Theme};

const ANSWER: &str = "The last page is lost because `end` is exclusive.\n\n- read the pager\n- change the **bound**\n\n```rust\nfn last(&self) -> usize {\n    self.len.div_ceil(self.size)\n}\n```\n";
const DIFF: &str = "@@ -41,3 +41,3 @@\n fn last(&self) -> usize {\n-    self.len / self.size\n+    self.len.div_ceil(self.size)\n }\n";

struct Screen {
    model: Model,
    painter: Painter,
    terminal: vt100::Parser,
    bytes: usize,
}

impl Screen {
    fn new(columns: u16, rows: u16) -> Self {
        Self::with(columns, rows, true, false)
    }

    fn with(columns: u16, rows: u16, color: bool, ascii: bool) -> Self {
        let options = ScreenOptions {
            theme: Theme::default(),
            ascii,
            color,
            mouse: false,
            placeholder: "what next?".to_owned(),
            spinner: "working".to_owned(),
        };
        let size = |cells| NonZero::new(cells).unwrap();
        let mut screen = Self {
            model: Model::new(options, (columns, rows)),
            painter: Painter::default(),
            terminal: vt100::Parser::new(size(rows), size(columns), 0),
            bytes: 0,
        };
        let session = SessionState {
            cwd: "/home/me/src/pager".to_owned(),
            model: Some("lab/sonnet".to_owned()),
            mode: Mode::Default,
            branch: Some("main*".to_owned()),
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

    fn take(&mut self, event: Event) {
        update(&mut self.model, event, 1_000);
    }

    fn tell(&mut self, event: impl Into<AgentEvent>) {
        self.take(Event::Runtime(Arc::new(Envelope {
            v: 1,
            seq: None,
            at: At::from_unix_ms(0),
            exec: ExecutionId::generate(),
            turn: None,
            event: event.into(),
        })));
    }

    fn item(&mut self, id: ItemId, body: ItemBody) {
        self.tell(ItemCompleted { item: Item { id, turn: 1, body } });
    }

    fn work(&mut self) {
        self.item(
            ItemId::user(1, 0),
            ItemBody::UserMessage {
                text: "fix the off-by-one in the pager and add a test".to_owned(),
                steer: false,
            },
        );
        self.item(
            ItemId::text(1, 0, 0),
            ItemBody::AssistantMessage { text: ANSWER.to_owned(), incomplete: false },
        );
        self.call(0, "read", "src/pager.rs", ToolCallStatus::Done, "120 lines", "");
        self.call(1, "edit", "src/pager.rs", ToolCallStatus::Done, "+1 -1", DIFF);
        self.call(2, "bash", "cargo test -p pager", ToolCallStatus::Failed, "exit 101", "");
    }

    fn call(
        &mut self,
        index: u32,
        tool: &str,
        title: &str,
        status: ToolCallStatus,
        summary: &str,
        diff: &str,
    ) {
        let changes = if diff.is_empty() {
            Vec::new()
        } else {
            vec![FileChange {
                path: title.to_owned(),
                added: 1,
                removed: 1,
                diff: diff.to_owned(),
                ..FileChange::default()
            }]
        };
        let body = ItemBody::ToolCall(ToolCallItem {
            status,
            title: title.to_owned(),
            summary: summary.to_owned(),
            result: status.is_final().then(|| ToolResult::ok("error: test failed")),
            changes,
            ms: Some(2_130),
            ..ToolCallItem::waiting(CallId::of(1, 0, index), tool, serde_json::Value::Null)
        });
        self.item(ItemId::call(1, 0, index), body);
    }

    fn ask(&mut self) {
        let approval = Approval {
            id: ApprovalId::new("a1"),
            item: ItemId::call(1, 0, 2),
            tool: "bash".to_owned(),
            arguments: serde_json::Value::Null,
            detail: "git push origin main".to_owned(),
            reasons: vec!["ask rule bash \"git push\" in .loon/config.toml:14".to_owned()],
            cwd: "~/src/pager".to_owned(),
            always: Some(PermissionRule {
                tool: "bash".to_owned(),
                path_prefix: None,
                command_prefix: Some("git push origin".to_owned()),
                host: None,
            }),
        };
        self.tell(ApprovalRequested { approval });
    }

    fn change(&mut self, change: RecordChange) {
        self.tell(RecordChanged { change });
    }

    /// A goal, five steps, three tasks, three notes and a price.
    fn write_down(&mut self) {
        let goal = "every page shows, the empty one too".to_owned();
        self.change(RecordChange::Goal { goal: Some(goal) });
        let step = |step: &str, status| ChecklistStep { step: step.to_owned(), status };
        let steps = vec![
            step("read pager.rs", WorkStatus::Completed),
            step("reproduce the lost page", WorkStatus::Completed),
            step("change the bound and keep the signature of last()", WorkStatus::InProgress),
            step("add a test", WorkStatus::Pending),
            step("run the suite", WorkStatus::Pending),
        ];
        self.change(RecordChange::Checklist { steps });
        for (id, title, blocked_by) in [
            (1, "fix the pager", vec![]),
            (2, "fix the footer", vec![]),
            (3, "write the release notes", vec![1, 2]),
        ] {
            let status = if id == 1 { WorkStatus::InProgress } else { WorkStatus::Pending };
            let (title, description) = (title.to_owned(), String::new());
            self.change(RecordChange::Task {
                task: Task { id, title, description, status, blocked_by },
            });
        }
        for text in [
            "old",
            "the suite needs --locked",
            "len counts from one, end is exclusive: both are documented in the module",
        ] {
            self.change(RecordChange::Note { text: text.to_owned() });
        }
        self.spend();
        self.model.hint = None;
    }

    fn spend(&mut self) {
        let usd = serde_json::from_str("\"0.1134\"").unwrap();
        self.tell(used(Cost { usd, unpriced: 0 }, Bounds::default()));
    }

    /// Asks how far to go back to the first message.
    fn go_back(&mut self, detail: &str) {
        let to = ItemId::user(1, 0);
        let (rewind, _) = crate::rewind::Rewind::ask(to.clone(), "fix the off-by-one\nand more");
        self.model.rewind = Some(rewind);
        self.tell(RewindPreviewed { to, detail: Some(detail.to_owned()) });
    }

    /// Draws and gives what the terminal shows, row by row, the cursor as `▏`.
    fn shown(&mut self) -> String {
        self.model.prepare(true);
        let (columns, rows) = self.model.size;
        if std::mem::take(&mut self.model.repaint) {
            self.painter.forget();
            let size = |cells| NonZero::new(cells).unwrap();
            self.terminal.set_size(size(rows), size(columns));
        }
        let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
        let cursor = super::draw(&self.model, &mut buffer);
        let bytes = self.painter.paint(&mut buffer, self.model.places.transcript, cursor);
        self.bytes = bytes.len();
        self.terminal.process(bytes);
        let at = self.terminal.screen().cursor_position();
        if let Some((x, y)) = cursor {
            assert_eq!(at, (y, x), "the terminal's cursor is elsewhere");
        }
        let rows: Vec<String> =
            self.terminal.screen().rows(0, columns).map(|row| row.trim_end().to_owned()).collect();
        rows.join("\n")
    }
}

#[test]
fn a_new_session_says_what_to_do() {
    insta::assert_snapshot!(Screen::new(60, 12).shown());
}

#[test]
fn work_at_100x30() {
    let mut screen = Screen::new(100, 30);
    screen.work();
    insta::assert_snapshot!(screen.shown());
}

#[test]
fn work_at_30x10() {
    let mut screen = Screen::new(30, 10);
    screen.work();
    insta::assert_snapshot!(screen.shown());
}

#[test]
fn work_at_60x20_in_ascii_without_colour() {
    let mut screen = Screen::with(60, 20, false, true);
    screen.work();
    let shown = screen.shown();
    assert!(shown.is_ascii());
    for y in 0..20 {
        for x in 0..60 {
            let cell = screen.terminal.screen().cell(y, x).unwrap();
            assert_eq!(
                (cell.fgcolor(), cell.bgcolor()),
                (vt100::Color::Default, vt100::Color::Default)
            );
        }
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn work_at_250x80_keeps_to_a_readable_column() {
    let mut screen = Screen::new(250, 80);
    screen.work();
    let shown = screen.shown();
    assert!(shown.lines().take(70).all(|row| crate::safe::text_width(row) <= 123));
    assert!(shown.contains("ask before edits"));
}

#[test]
fn an_approval_at_100x30() {
    let mut screen = Screen::new(100, 30);
    screen.work();
    screen.ask();
    insta::assert_snapshot!(screen.shown());
}

#[test]
fn an_approval_at_30x10_keeps_command_and_choices() {
    let mut screen = Screen::new(30, 10);
    screen.work();
    screen.ask();
    insta::assert_snapshot!(screen.shown());
}

#[test]
fn a_long_command_scrolls_to_its_end_and_no_further() {
    let mut screen = Screen::new(60, 20);
    screen.ask();
    let long: Vec<String> = (0..100).map(|at| format!("echo {at}")).collect();
    let approval = Approval {
        id: ApprovalId::new("a2"),
        item: ItemId::call(1, 0, 3),
        tool: "bash".to_owned(),
        arguments: serde_json::Value::Null,
        detail: long.join("\n"),
        reasons: Vec::new(),
        cwd: String::new(),
        always: None,
    };
    screen.tell(loon_api::event::ApprovalResolved {
        approval: ApprovalId::new("a1"),
        decision: loon_api::event::Decision::Denied,
        reason: None,
        rule: None,
    });
    screen.tell(ApprovalRequested { approval });
    assert!(screen.shown().contains("echo 0"));
    screen.model.approvals.scroll(1_000);
    assert!(screen.shown().contains("echo 99"));
    screen.model.approvals.scroll(-1);
    screen.shown();
    assert!(screen.shown().contains("echo 98"));
    assert!(screen.shown().contains("y  once"));
}

#[test]
fn the_palette_at_100x30() {
    let mut screen = Screen::new(100, 30);
    screen.work();
    screen.model.layers.push(crate::popup::palette::open(&[]));
    insta::assert_snapshot!(screen.shown());
}

#[test]
fn the_panel_at_110x30() {
    let mut screen = Screen::new(110, 30);
    screen.work();
    screen.write_down();
    insta::assert_snapshot!(screen.shown());
}

#[test]
fn the_panel_at_160x45() {
    let mut screen = Screen::new(160, 45);
    screen.work();
    screen.write_down();
    insta::assert_snapshot!(screen.shown());
}

#[test]
fn the_panel_at_250x80_stands_at_the_right() {
    let mut screen = Screen::new(250, 80);
    screen.work();
    screen.write_down();
    let shown = screen.shown();
    let first: Vec<char> = shown.lines().next().unwrap().chars().collect();
    assert_eq!(first[204], '│');
    assert_eq!(first[206..].iter().collect::<String>(), "Goal");
    assert!(shown.contains("◐ change the bound and keep the signature"));
}

#[test]
fn the_panel_at_120x30_in_ascii_without_colour() {
    let mut screen = Screen::with(120, 30, false, true);
    screen.work();
    screen.write_down();
    let shown = screen.shown();
    assert!(shown.is_ascii());
    insta::assert_snapshot!(shown);
}

#[test]
fn the_panel_cuts_wide_characters_and_shows_what_a_terminal_would_obey() {
    let mut screen = Screen::new(110, 24);
    screen.work();
    let step = |step: &str, status| ChecklistStep { step: step.to_owned(), status };
    let steps = vec![
        step(&"你好世界".repeat(40), WorkStatus::Completed),
        step(&"修复分页器👩‍👩‍👧的边界".repeat(9), WorkStatus::InProgress),
        step("\u{202e}evil\x1b[2J\r\nsecond line", WorkStatus::Pending),
        step("", WorkStatus::Pending),
    ];
    screen.change(RecordChange::Checklist { steps });
    screen.change(RecordChange::Note { text: "note ".repeat(2_000) });
    screen.change(RecordChange::Note { text: "长".repeat(9_000) });
    let shown = screen.shown();
    for y in 0..18 {
        let cell = screen.terminal.screen().cell(y, 80).unwrap();
        assert_eq!(cell.contents(), "│", "row {y}");
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_long_plan_shows_the_step_in_progress() {
    let mut screen = Screen::new(110, 24);
    screen.work();
    let steps = (0..60).map(|at| ChecklistStep {
        step: format!("step {at}"),
        status: match at {
            0..40 => WorkStatus::Completed,
            40 => WorkStatus::InProgress,
            _ => WorkStatus::Pending,
        },
    });
    screen.change(RecordChange::Checklist { steps: steps.collect() });
    insta::assert_snapshot!(screen.shown());
}

#[test]
fn narrow_screens_say_how_far_the_plan_is_and_list_it() {
    for (columns, rows) in [(30, 10), (80, 24)] {
        let mut screen = Screen::new(columns, rows);
        screen.work();
        screen.write_down();
        let state = screen.shown().lines().last().unwrap().to_owned();
        assert!(state.contains("plan 2/5"), "{state}");
        let popup = crate::popup::record::open(&screen.model.session, screen.model.glyphs);
        screen.model.layers.push(popup);
        insta::assert_snapshot!(format!("the_record_at_{columns}x{rows}"), screen.shown());
    }
}

#[test]
fn going_back_asks_about_files() {
    let detail = format!(
        "src/old.rs: changed by hand since, stays as it is\n--- a/src/pager.rs\n+++ b/src/pager.rs\n{DIFF}--- a/src/new.rs\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-//! New.\n-fn new() {{}}\n"
    );
    for (columns, rows) in [(100, 30), (30, 10)] {
        let mut screen = Screen::new(columns, rows);
        screen.work();
        screen.go_back(&detail);
        insta::assert_snapshot!(format!("going_back_at_{columns}x{rows}"), screen.shown());
        screen.model.rewind.as_mut().unwrap().scroll(1_000);
        assert!(screen.shown().contains("by hand"));
    }
}

#[test]
fn calls_that_keep_the_books_stay_in_the_background() {
    let mut screen = Screen::new(80, 24);
    let step = |step: &str, status| ChecklistStep { step: step.to_owned(), status };
    let checklist = RecordChange::Checklist {
        steps: vec![
            step("read pager.rs", WorkStatus::Completed),
            step("change the bound", WorkStatus::InProgress),
        ],
    };
    let note = RecordChange::Note { text: "the suite needs --locked".to_owned() };
    for (index, tool, change) in [(0, "todo_write", checklist), (1, "note", note)] {
        let body = ItemBody::ToolCall(ToolCallItem {
            status: ToolCallStatus::Done,
            record: vec![change],
            result: Some(ToolResult::ok("written down")),
            ..ToolCallItem::waiting(CallId::of(1, 0, index), tool, serde_json::Value::Null)
        });
        screen.item(ItemId::call(1, 0, index), body);
    }
    let undone = ItemBody::ToolCall(ToolCallItem {
        status: ToolCallStatus::Done,
        by_user: true,
        title: "src/pager.rs".to_owned(),
        summary: "1 file".to_owned(),
        result: Some(ToolResult::ok("taken back")),
        ..ToolCallItem::waiting(CallId::of(1, 1, 0), "undo", serde_json::Value::Null)
    });
    screen.item(ItemId::user_call(1, 0), undone);
    screen.call(3, "process_poll", "dev server", ToolCallStatus::Running, "", "");
    screen.call(4, "web_fetch", "https://docs.rs/pager", ToolCallStatus::Done, "200, 14 KB", "");
    screen.shown();
    screen.model.transcript.toggle_row(0);
    insta::assert_snapshot!(screen.shown());
}

#[test]
fn wide_and_joined_characters_do_not_move_borders() {
    let mut screen = Screen::new(40, 16);
    screen.model.composer.paste_text("你好👩‍👩‍👧☸️e\u{301}한글");
    let text = "你好世界".repeat(20) + " 👩‍👩‍👧👍🏽♻️ A\u{200b}B ｱ \u{202e}evil\x1b[2J";
    screen.item(ItemId::text(1, 0, 0), ItemBody::AssistantMessage { text, incomplete: true });
    let shown = screen.shown();
    let edges: Vec<&str> = shown.lines().filter(|row| row.starts_with('│')).collect();
    assert_eq!(edges.len(), 1);
    let last =
        (0..16).find(|y| screen.terminal.screen().cell(*y, 0).unwrap().contents() == "│").unwrap();
    assert_eq!(screen.terminal.screen().cell(last, 39).unwrap().contents(), "│");
    insta::assert_snapshot!(shown);
}

#[test]
fn another_size_draws_everything_anew() {
    let mut screen = Screen::new(100, 30);
    screen.work();
    screen.shown();
    screen.take(Event::Resize(30, 10));
    let narrow = screen.shown();
    screen.take(Event::Resize(100, 30));
    let wide = screen.shown();
    let mut fresh = Screen::new(100, 30);
    fresh.work();
    assert_eq!(wide, fresh.shown());
    let mut small = Screen::new(30, 10);
    small.work();
    assert_eq!(narrow, small.shown());
}

#[test]
fn the_smallest_screens_do_not_fail() {
    for (columns, rows) in [(1, 1), (2, 2), (4, 3), (8, 4), (12, 5), (20, 6), (110, 3), (120, 8)] {
        let mut screen = Screen::new(columns, rows);
        screen.work();
        screen.write_down();
        screen.shown();
        screen.go_back(DIFF);
        screen.shown();
        screen.ask();
        screen.shown();
        screen.model.layers.push(crate::popup::help::open());
        screen.shown();
    }
}

fn used(cost: Cost, bounds: Bounds) -> ResourcesUpdated {
    let usage =
        Usage { input_tokens: Some(38_120), output_tokens: Some(3_044), ..Usage::default() };
    ResourcesUpdated {
        tokens: usage.total(),
        usage,
        cost,
        ms: 900,
        count: 1,
        requests: 1,
        exceeded: bounds != Bounds::default(),
        bounds,
    }
}

#[test]
fn a_reached_budget_asks_in_place_of_the_composer() {
    for size in [(100, 30), (30, 10)] {
        let mut screen = Screen::new(size.0, size.1);
        let (limit, spent) = ("0.1".parse().unwrap(), "0.1134".parse().unwrap());
        let bounds = Bounds { max_usd: Some(limit), ..Bounds::default() };
        screen.tell(used(Cost { usd: spent, unpriced: 2 }, bounds));
        let reached = ReachedBound::MaxUsd { limit, used: spent };
        screen.tell(BudgetReached { reached });
        insta::assert_snapshot!(format!("budget_{}", size.0), screen.shown());
    }
}
