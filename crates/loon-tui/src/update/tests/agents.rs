//! Children of the session: listed, watched, steered, stopped; and the switch of Ultra Loop.

use loon_api::event::{
    ReviewFinished, ReviewStarted, SubagentFinished, SubagentShown, SubagentStarted,
    UltraLoopChanged,
};
use loon_api::{Review, ReviewVerdict, SubagentState, SubagentStatus, SubagentSummary};

use super::*;
use crate::view;

fn started(id: &str) -> SubagentStarted {
    SubagentStarted {
        id: id.to_owned(),
        agent: "helper".to_owned(),
        child: ExecutionId::generate(),
        task: "look around".to_owned(),
        model: "lab/small".to_owned(),
        effort: Some(loon_api::Effort::High),
        background: true,
        worktree: None,
    }
}

fn summary(id: &str, state: SubagentState) -> SubagentSummary {
    SubagentSummary {
        id: id.to_owned(),
        agent: "helper".to_owned(),
        child: ExecutionId::generate(),
        state,
        status: None,
        model: "lab/small".to_owned(),
        effort: None,
        background: true,
        steps: 3,
        tokens: 4_200,
        cost: Cost { usd: "0.25".parse().unwrap(), unpriced: 0 },
        call: "bash cargo test".to_owned(),
        quiet_ms: (state == SubagentState::Stalled).then_some(360_000),
    }
}

fn finished(id: &str) -> SubagentFinished {
    SubagentFinished {
        id: id.to_owned(),
        agent: "helper".to_owned(),
        child: ExecutionId::generate(),
        status: SubagentStatus::Completed,
        error: None,
        report: None,
        steps: 4,
        usage: Usage::default(),
        cost: Cost::default(),
        ms: None,
        effects: None,
        worktree: None,
        receipt: None,
    }
}

fn words(id: ItemId, text: &str) -> Item {
    Item { id, turn: 1, body: ItemBody::UserMessage { text: text.to_owned(), steer: false } }
}

/// The line at the bottom of the screen.
fn state_line(screen: &mut Screen) -> String {
    screen.model.hint = None;
    screen.model.prepare(true);
    let area = ratatui::layout::Rect::new(0, 0, 80, 24);
    let mut buffer = ratatui::buffer::Buffer::empty(area);
    view::draw(&screen.model, &mut buffer);
    (0..80).map(|x| buffer[(x, 23)].symbol()).collect()
}

fn run(screen: &mut Screen, text: &str) -> Vec<Action> {
    screen.type_text(text);
    screen.press(KeyCode::Enter)
}

fn open_list(screen: &mut Screen) {
    assert_eq!(run(screen, "/agents"), sent(Command::ListSubagents));
    assert_eq!(screen.model.layers.last().unwrap().kind, Kind::Agents);
}

#[test]
fn the_list_of_agents_lives_and_its_letters_are_orders() {
    let mut screen = Screen::new();
    screen.tell(started("a1"));
    screen.tell(started("a2"));
    open_list(&mut screen);
    let rows = |screen: &Screen| -> Vec<(String, String)> {
        let popup = screen.model.layers.last().unwrap();
        popup.shown_rows().map(|row| (row.label.clone(), row.note.clone())).collect()
    };
    assert_eq!(rows(&screen)[0].1, "running, 0 steps, 0 tokens");
    assert!(rows(&screen)[0].0.ends_with("a1 helper  look around"));
    screen.press(KeyCode::Down);
    let agent = summary("a2", SubagentState::Stalled);
    screen.tell(agent.progressed());
    assert!(rows(&screen)[1].0.ends_with("a2 helper  bash cargo test"));
    assert_eq!(rows(&screen)[1].1, "silent for 6 min, 3 steps, 4.2k tokens, $0.25");
    assert_eq!(screen.press(KeyCode::Char('q')), [], "no letter filters");
    let id = || "a2".to_owned();
    assert_eq!(screen.press(KeyCode::Char('x')), sent(Command::StopSubagent { id: id() }));
    assert_eq!(screen.press(KeyCode::Char('s')), []);
    assert_eq!((screen.draft().as_str(), screen.model.layers.len()), ("/steer a2 ", 0));
    screen.type_text("look left");
    let steer = Command::SteerSubagent { id: id(), text: "look left".to_owned() };
    assert_eq!(screen.press(KeyCode::Enter), sent(steer));
    screen.tell(finished("a2"));
    assert_eq!(run(&mut screen, "/steer a2 again"), []);
    assert!(screen.model.hint.as_deref().unwrap().starts_with("agent a2 has ended"));
    assert_eq!(run(&mut screen, "/steer a7 x"), []);
    assert_eq!(run(&mut screen, "/steer a1"), []);
}

#[test]
fn a_watched_agent_takes_the_place_of_the_transcript_until_escape() {
    let mut screen = Screen::working();
    screen.tell(ItemCompleted { item: words(ItemId::user(1, 0), "the whole") });
    screen.tell(started("a1"));
    open_list(&mut screen);
    let id = || "a1".to_owned();
    let watch = Command::WatchSubagent { id: Some(id()) };
    assert_eq!(screen.press(KeyCode::Enter), sent(watch));
    let told = |screen: &Screen| {
        let shown = screen.model.shown_transcript().user_messages();
        shown.map(|(_, text)| text.to_owned()).collect::<Vec<_>>()
    };
    assert!(told(&screen).is_empty());
    let items = vec![words(ItemId::user(1, 0), "look around")];
    screen.tell(SubagentShown { id: id(), items });
    let items = vec![words(ItemId::user(1, 0), "of another")];
    screen.tell(SubagentShown { id: "a2".to_owned(), items });
    assert_eq!(told(&screen), ["look around"]);
    let line = state_line(&mut screen);
    assert!(line.contains("agent a1 (helper), running: Enter steers it"), "{line}");
    screen.type_text("look left");
    let steer = Command::SteerSubagent { id: id(), text: "look left".to_owned() };
    assert_eq!(screen.press(KeyCode::Enter), sent(steer));
    assert_eq!(screen.draft(), "");
    screen.tell(finished("a1"));
    screen.type_text("too late");
    assert_eq!(screen.press(KeyCode::Enter), []);
    assert_eq!(screen.draft(), "too late", "nothing that was written is lost");
    assert_eq!(screen.press(KeyCode::Esc), sent(Command::WatchSubagent { id: None }));
    assert_eq!(told(&screen), ["the whole"]);
    assert_eq!(screen.press(KeyCode::Esc), sent(Command::Interrupt), "the turn is next");
}

#[test]
fn the_state_line_tells_agents_and_reviews() {
    let mut screen = Screen::working();
    assert_eq!(run(&mut screen, "/ultra on"), sent(Command::SetUltraLoop { on: true }));
    assert_eq!(run(&mut screen, "/ultra off"), sent(Command::SetUltraLoop { on: false }));
    assert_eq!(run(&mut screen, "/ultra"), []);
    assert_eq!(screen.model.hint.as_deref(), Some("Ultra Loop is off: /ultra on"));
    assert!(!state_line(&mut screen).contains("ultra"));
    screen.tell(UltraLoopChanged { on: true });
    screen.tell(started("a1"));
    screen.tell(started("a2"));
    screen.tell(finished("a2"));
    let line = state_line(&mut screen);
    assert!(
        line.contains("working") && line.contains("ultra") && line.contains("1 agent "),
        "{line}"
    );
    screen.tell(ReviewStarted { number: 1, of: 3, model: "lab/judge".to_owned() });
    let line = state_line(&mut screen);
    assert!(line.contains("reviewing 1/3"), "{line}");
    let review = Review {
        verdict: ReviewVerdict::Findings,
        findings: vec!["no test".to_owned()],
        error: None,
        model: None,
        usage: Usage::default(),
        cost: Cost::default(),
    };
    screen.tell(ReviewFinished { number: 1, review });
    assert!(state_line(&mut screen).contains("working"));
}
