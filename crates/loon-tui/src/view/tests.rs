//! Whole screens, as a terminal shows them after the painter's bytes.

use std::num::NonZero;
use std::sync::Arc;

use loon_api::event::{
    ApprovalRequested, DeltaKind, ItemCompleted, ItemDelta, ItemStarted, MeterUpdated,
    PromptQueued, SessionOpened, SessionState, TurnStarted,
};
use loon_api::{
    AgentEvent, Approval, ApprovalId, At, CallId, Cost, Envelope, ExecutionId, FileChange, Item,
    ItemBody, ItemId, Mode, PermissionRule, ToolCallItem, ToolCallStatus, ToolResult, Usage,
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

    /// Draws and gives what the terminal shows, row by row, the cursor as `▏`.
    fn shown(&mut self) -> String {
        self.model.prepare();
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
    screen.model.layers.push(crate::popup::palette::open());
    insta::assert_snapshot!(screen.shown());
}

#[test]
fn streaming_moves_rows_instead_of_writing_them() {
    let mut screen = Screen::new(100, 30);
    screen.tell(TurnStarted {
        model: "lab/sonnet".to_owned(),
        mode: Mode::Default,
        branch: Some("main".into()),
    });
    screen.tell(PromptQueued { text: "then the docs".to_owned(), steer: false });
    let id = ItemId::text(1, 0, 0);
    let body = ItemBody::AssistantMessage { text: String::new(), incomplete: false };
    screen.tell(ItemStarted { item: Item { id: id.clone(), turn: 1, body } });
    let mut written = 0;
    let mut text = 0;
    for line in 0..400 {
        let more = format!(
            "line {line} of many words that go on and on until the row is nearly full of them\n\n"
        );
        text += more.len();
        screen.tell(ItemDelta { item: id.clone(), of: DeltaKind::Text, text: more });
        screen.tell(MeterUpdated { tokens: line * 20, ms: 1 + line * 30, estimated: true });
        screen.shown();
        written += screen.bytes;
    }
    assert!(written < text * 3, "{written} bytes were written for {text} bytes of text");
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
    for (columns, rows) in [(1, 1), (2, 2), (4, 3), (8, 4), (12, 5), (20, 6)] {
        let mut screen = Screen::new(columns, rows);
        screen.work();
        screen.shown();
        screen.ask();
        screen.shown();
        screen.model.layers.push(crate::popup::help::open());
        screen.shown();
    }
}
