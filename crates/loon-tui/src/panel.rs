//! The side panel: goal, plan, tasks, notes and what was spent, laid out for one size. It is made
//! anew only when one of them or the size changes.

#[cfg(test)]
mod tests;

use loon_api::{Task, WorkStatus, WorkingRecord};
use ratatui::style::Modifier;

use crate::glyphs::Glyphs;
use crate::line::{Break, Line, Look, Span, spread, wrap};
use crate::session::{Session, count_words, steps_done, tasks_done, waits_for};
use crate::theme::Role;

/// Columns of the screen from which there is a panel.
const FROM_COLUMNS: u16 = 110;
/// Least and most columns of the panel.
const COLUMNS: (u16, u16) = (30, 46);
/// Columns of the panel that hold no text: a line, and a blank at either side.
pub(crate) const FRAME_COLUMNS: u16 = 3;
/// Rows that the goal and the step in progress may take.
const FULL_ROWS: usize = 3;
/// Notes that show, and rows of each.
const NOTES: usize = 2;
const NOTE_ROWS: usize = 2;
/// Rows a list keeps before other sections give way.
const LEAST_ROWS: usize = 5;
/// Rows from which a cut list says what is missing.
const MARKED_ROWS: usize = 3;
/// Bytes of one text that are looked at.
const TEXT_LIMIT: usize = 1_000;

/// The panel as it was last laid out.
#[derive(Debug, Default)]
pub(crate) struct Panel {
    /// The user wants none.
    pub(crate) hidden: bool,
    made_for: Option<(usize, usize, u64)>,
    lines: Vec<Line>,
}

impl Panel {
    /// A screen of `columns` has room for it.
    pub(crate) fn is_possible(columns: u16) -> bool {
        columns >= FROM_COLUMNS
    }

    /// Columns it takes of a screen of `columns`; none if it would be empty.
    pub(crate) fn width(&self, columns: u16, session: &Session) -> u16 {
        let shows = !self.hidden
            && Self::is_possible(columns)
            && (session.has_record() || session.has_spent());
        if shows { (columns / 4).clamp(COLUMNS.0, COLUMNS.1) } else { 0 }
    }

    /// Lays it out, if that was not done for these rows and columns of text.
    pub(crate) fn layout(
        &mut self,
        session: &Session,
        width: usize,
        height: usize,
        glyphs: &Glyphs,
    ) {
        let wanted = Some((width, height, session.revision));
        if self.made_for != wanted {
            self.made_for = wanted;
            self.lines = lay(session, width, height, glyphs);
        }
    }

    /// It is laid out anew when it is shown next.
    pub(crate) fn forget_layout(&mut self) {
        self.made_for = None;
    }

    /// Its lines, top to bottom.
    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }
}

/// What a section is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Goal,
    List,
    Notes,
    Spent,
}

struct Section {
    kind: Kind,
    heading: Line,
    rows: Vec<Line>,
    /// The row that stays in view.
    anchor: usize,
}

impl Section {
    fn new(kind: Kind, name: &str, count: &str, rows: Vec<Line>, anchor: usize) -> Self {
        let mut heading = Line::of(name, Look::of(Role::Heading).with(Modifier::BOLD));
        if !count.is_empty() {
            heading.push(&format!(" {count}"), Role::Dim);
        }
        Self { kind, heading, rows, anchor }
    }

    fn least(&self) -> usize {
        match self.kind {
            Kind::List => self.rows.len().min(LEAST_ROWS),
            Kind::Goal | Kind::Notes | Kind::Spent => self.rows.len(),
        }
    }
}

fn lay(session: &Session, width: usize, height: usize, glyphs: &Glyphs) -> Vec<Line> {
    let mut sections: Vec<Section> = [
        goal(session, width, glyphs),
        plan(session, width, glyphs),
        tasks(session, width, glyphs),
        notes(session, width, glyphs),
        spent(session),
    ]
    .into_iter()
    .flatten()
    .collect();
    // Where rows are few, what is asked for least often gives way first.
    for kind in [Kind::Notes, Kind::Goal, Kind::Spent] {
        if rows_of(&sections, Section::least) > height {
            sections.retain(|section| section.kind != kind);
        }
    }
    share(&mut sections, height, glyphs);
    let mut lines = Vec::new();
    for section in sections {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(section.heading);
        lines.extend(section.rows);
    }
    lines.truncate(height);
    lines.into_iter().map(|line| line.cut(width, glyphs.ellipsis)).collect()
}

/// Rows of all sections with their headings and the blanks between them.
fn rows_of(sections: &[Section], rows: impl Fn(&Section) -> usize) -> usize {
    let own: usize = sections.iter().map(|section| rows(section) + 1).sum();
    own + sections.len().saturating_sub(1)
}

/// Gives the lists the rows that are left, the short ones first.
fn share(sections: &mut [Section], height: usize, glyphs: &Glyphs) {
    let is_list = |section: &Section| section.kind == Kind::List;
    let fixed = |section: &Section| if is_list(section) { 0 } else { section.rows.len() };
    let mut room = height.saturating_sub(rows_of(sections, fixed));
    let mut lists = sections.iter().filter(|section| is_list(section)).count();
    let mut later: usize =
        sections.iter().filter(|section| is_list(section)).map(|section| section.rows.len()).sum();
    for section in sections.iter_mut().filter(|section| is_list(section)) {
        later -= section.rows.len();
        let given = (room / lists).max(room.saturating_sub(later));
        let rows = std::mem::take(&mut section.rows);
        section.rows = window(rows, section.anchor, given, glyphs);
        room -= section.rows.len().min(room);
        lists -= 1;
    }
}

/// The `room` rows around the anchor, with a word on what is above and below them.
fn window(rows: Vec<Line>, anchor: usize, room: usize, glyphs: &Glyphs) -> Vec<Line> {
    let count = rows.len();
    if count <= room {
        return rows;
    }
    let first = match anchor.saturating_sub(room / 3).min(count - room) {
        // A word on one hidden row would take that row's place.
        1 if anchor + 1 < room => 0,
        first => first,
    };
    let mut shown: Vec<Line> = rows.into_iter().skip(first).take(room).collect();
    if room < MARKED_ROWS {
        return shown;
    }
    let more = |hidden: usize, words: &str| {
        Line::of(&format!("{} {hidden} {words}", glyphs.ellipsis), Role::Dim)
    };
    if first > 0
        && let Some(row) = shown.first_mut()
    {
        *row = more(first + 1, "before");
    }
    let below = count - first - room;
    if below > 0
        && let Some(row) = shown.last_mut()
    {
        *row = more(below + 1, "more");
    }
    shown
}

fn goal(session: &Session, width: usize, glyphs: &Glyphs) -> Option<Section> {
    let goal = session.record.goal.as_deref()?;
    let rows = wrapped("", goal, Look::of(Role::Text), width, FULL_ROWS, glyphs);
    Some(Section::new(Kind::Goal, "Goal", "", rows, 0))
}

fn plan(session: &Session, width: usize, glyphs: &Glyphs) -> Option<Section> {
    let steps = &session.record.steps;
    let statuses: Vec<WorkStatus> = steps.iter().map(|step| step.status).collect();
    let current = current(&statuses)?;
    let mut rows = Vec::new();
    let mut anchor = 0;
    for (at, step) in steps.iter().enumerate() {
        if at == current {
            anchor = rows.len();
        }
        rows.extend(entry(step.status, "", &step.step, false, width, glyphs));
    }
    let count = format!("{}/{}", steps_done(&session.record), steps.len());
    Some(Section::new(Kind::List, "Plan", &count, rows, anchor))
}

fn tasks(session: &Session, width: usize, glyphs: &Glyphs) -> Option<Section> {
    let record = &session.record;
    let statuses: Vec<WorkStatus> = record.tasks.iter().map(|task| task.status).collect();
    let current = current(&statuses)?;
    let mut rows = Vec::new();
    let mut anchor = 0;
    for (at, task) in record.tasks.iter().enumerate() {
        if at == current {
            anchor = rows.len();
        }
        rows.extend(task_rows(record, task, width, glyphs));
    }
    let count = format!("{}/{}", tasks_done(record), record.tasks.len());
    Some(Section::new(Kind::List, "Tasks", &count, rows, anchor))
}

/// A task, with what it waits for at the right, else on a row of its own.
fn task_rows(record: &WorkingRecord, task: &Task, width: usize, glyphs: &Glyphs) -> Vec<Line> {
    let after = waits_for(record, task);
    let number = format!("{} ", task.id);
    let mut rows = entry(task.status, &number, &task.title, after.is_some(), width, glyphs);
    let Some(after) = after else { return rows };
    let whole = Line::of(&format!("  {number}{}", first_line(&task.title)), Role::Dim);
    if whole.width() + 1 + after.len() <= width
        && let Some(row) = rows.pop()
    {
        rows.push(spread(row, &Line::of(&after, Role::Dim), width, glyphs.ellipsis));
    } else {
        let indent = " ".repeat(2 + number.len());
        rows.push(Line::of(&format!("{indent}{after}"), Role::Dim));
    }
    rows
}

fn notes(session: &Session, width: usize, glyphs: &Glyphs) -> Option<Section> {
    let notes = &session.record.notes;
    let mark = format!("{} ", glyphs.bullet);
    let rows: Vec<Line> = notes
        .iter()
        .rev()
        .take(NOTES)
        .flat_map(|note| wrapped(&mark, note, Look::of(Role::Text), width, NOTE_ROWS, glyphs))
        .collect();
    let count = notes.len().to_string();
    (!notes.is_empty()).then(|| Section::new(Kind::Notes, "Notes", &count, rows, 0))
}

fn spent(session: &Session) -> Option<Section> {
    let mut rows = Vec::new();
    if let Some(money) = session.money_words() {
        rows.push(Line::of(&money, Role::Text));
    }
    rows.extend(tokens_line(session));
    session.has_spent().then(|| Section::new(Kind::Spent, "Spent", "", rows, 0))
}

fn tokens_line(session: &Session) -> Option<Line> {
    let usage = &session.usage;
    let part = |count: Option<u64>, words: &str| {
        count.filter(|count| *count > 0).map(|count| format!("{} {words}", count_words(count)))
    };
    let parts: Vec<String> =
        [part(usage.input_tokens, "tokens in"), part(usage.output_tokens, "out")]
            .into_iter()
            .flatten()
            .collect();
    (!parts.is_empty()).then(|| Line::of(&parts.join(", "), Role::Dim))
}

/// The first entry in progress, else the first that is not completed, else the last.
fn current(statuses: &[WorkStatus]) -> Option<usize> {
    let at = |wanted: fn(&WorkStatus) -> bool| statuses.iter().position(wanted);
    at(|status| *status == WorkStatus::InProgress)
        .or_else(|| at(|status| *status != WorkStatus::Completed))
        .or_else(|| statuses.len().checked_sub(1))
}

/// The sign of a status and the looks of it and of the text beside it.
pub(crate) fn sign(status: WorkStatus, glyphs: &Glyphs) -> (&'static str, Look, Look) {
    match status {
        WorkStatus::Pending => (glyphs.waiting, Look::of(Role::Dim), Look::of(Role::Text)),
        WorkStatus::InProgress => {
            (glyphs.running, Look::of(Role::Accent), Look::of(Role::Text).with(Modifier::BOLD))
        }
        WorkStatus::Completed => (glyphs.done, Look::of(Role::Ok), Look::of(Role::Dim)),
    }
}

/// One step or task: a row, or a few while it is in progress.
fn entry(
    status: WorkStatus,
    number: &str,
    text: &str,
    blocked: bool,
    width: usize,
    glyphs: &Glyphs,
) -> Vec<Line> {
    let (sign, sign_look, text_look) = sign(status, glyphs);
    let look = if blocked { Look::of(Role::Dim) } else { text_look };
    let most = if status == WorkStatus::InProgress { FULL_ROWS } else { 1 };
    let mut lines =
        wrapped("  ", &format!("{number}{}", first_line(text)), look, width, most, glyphs);
    if let Some(first) = lines.first_mut()
        && let Some(margin) = first.spans.first_mut()
    {
        *margin = Span::new(&format!("{sign} "), sign_look);
    }
    lines
}

/// Text in at most `most` rows, behind a mark and indented like it.
fn wrapped(
    mark: &str,
    text: &str,
    look: Look,
    width: usize,
    most: usize,
    glyphs: &Glyphs,
) -> Vec<Line> {
    let indent = mark.chars().count();
    let room = width.saturating_sub(indent).max(2);
    let text = Line::of(first_line(text), look);
    let mut parts = wrap(&text.spans, room, Break::Words);
    if most == 1 {
        parts = vec![text.cut(room, glyphs.ellipsis)];
    } else if parts.len() > most {
        parts.truncate(most);
        if let Some(last) = parts.last_mut() {
            // The mark takes the place of what does not fit beside it.
            *last = std::mem::take(last).and(glyphs.ellipsis, Role::Dim).cut(room, glyphs.ellipsis);
        }
    }
    parts
        .into_iter()
        .enumerate()
        .map(|(at, part)| {
            let margin = if at == 0 { mark.to_owned() } else { " ".repeat(indent) };
            let mut line = Line { spans: vec![Span::new(&margin, Role::Dim)] };
            line.spans.extend(part.spans);
            line
        })
        .collect()
}

/// The first line with words, of a bounded length.
pub(crate) fn first_line(text: &str) -> &str {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    line.get(..line.floor_char_boundary(TEXT_LIMIT)).unwrap_or(line)
}
