//! Everything the screen shows is drawn from here, and changes only in `update`.

use loon_api::{CustomCommand, ExecutionId, ItemId};
use ratatui::layout::Rect;

use crate::ScreenOptions;
use crate::agents::Agents;
use crate::approval::Approvals;
use crate::budget::BudgetSheet;
use crate::composer::Composer;
use crate::event::Action;
use crate::glyphs::{ASCII, Glyphs, UNICODE};
use crate::panel::{FRAME_COLUMNS, Panel};
use crate::popup::Popup;
use crate::rewind::Rewind;
use crate::session::Session;
use crate::theme::Theme;
use crate::transcript::{Page, Transcript};

/// State of the screen.
#[derive(Debug)]
pub(crate) struct Model {
    /// Columns and rows.
    pub(crate) size: (u16, u16),
    /// The screen's clock: milliseconds since it began.
    pub(crate) now: u64,
    /// Colours.
    pub(crate) theme: Theme,
    /// Colours are used at all.
    pub(crate) color: bool,
    /// Signs.
    pub(crate) glyphs: &'static Glyphs,
    /// Words in the empty composer.
    pub(crate) placeholder: String,
    /// What the state line says while a turn runs.
    pub(crate) spinner: String,
    /// The session.
    pub(crate) session: Session,
    /// Its id.
    pub(crate) exec: Option<ExecutionId>,
    /// The runtime has opened the session.
    pub(crate) opened: bool,
    /// The transcript.
    pub(crate) transcript: Transcript,
    /// The children of the session.
    pub(crate) agents: Agents,
    /// The draft.
    pub(crate) composer: Composer,
    /// Custom commands, as they were when they were asked for last.
    pub(crate) customs: Vec<CustomCommand>,
    /// Requests for a decision.
    pub(crate) approvals: Approvals,
    /// The question whether to raise a bound of the budget.
    pub(crate) budget: Option<BudgetSheet>,
    /// The place that a search found, until it is in view.
    pub(crate) sought: Option<(ExecutionId, ItemId)>,
    /// A message to go back to, while it is not decided how far.
    pub(crate) rewind: Option<Rewind>,
    /// The side panel.
    pub(crate) panel: Panel,
    /// Lists on top of each other; the last has the keys.
    pub(crate) layers: Vec<Popup>,
    /// A short word at the right of the state line, until the next key.
    pub(crate) hint: Option<String>,
    /// The user asked to leave, at this time.
    pub(crate) closing: Option<u64>,
    /// Last Ctrl+C.
    pub(crate) last_ctrl_c: Option<u64>,
    /// Last Escape that found nothing to do.
    pub(crate) last_escape: Option<u64>,
    /// Keys that arrived in quick succession: how many, and when the last.
    pub(crate) burst: (u32, u64),
    /// The theme before a list began to show others.
    pub(crate) theme_before: Option<Theme>,
    /// The whole screen should be painted anew.
    pub(crate) repaint: bool,
    /// Where things stand on the screen.
    pub(crate) places: Places,
}

/// Where things stand on the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// Transcript.
    pub(crate) transcript: Rect,
    /// Side panel.
    pub(crate) panel: Rect,
    /// Waiting prompts, or commands that the draft may become.
    pub(crate) above: Rect,
    /// Composer or approval sheet.
    pub(crate) bottom: Rect,
    /// State line.
    pub(crate) state: Rect,
}

impl Model {
    /// The state before anything is known.
    pub(crate) fn new(options: ScreenOptions, size: (u16, u16)) -> Self {
        Self {
            size,
            now: 0,
            theme: options.theme,
            color: options.color,
            glyphs: if options.ascii { &ASCII } else { &UNICODE },
            placeholder: options.placeholder,
            spinner: options.spinner,
            session: Session::default(),
            exec: None,
            opened: false,
            transcript: Transcript::default(),
            agents: Agents::default(),
            composer: Composer::default(),
            customs: Vec::new(),
            approvals: Approvals::default(),
            budget: None,
            sought: None,
            rewind: None,
            panel: Panel::default(),
            layers: Vec::new(),
            hint: None,
            closing: None,
            last_ctrl_c: None,
            last_escape: None,
            burst: (0, 0),
            theme_before: None,
            repaint: false,
            places: Places::default(),
        }
    }

    /// Takes over how the screen should look. A list of themes that is open goes on, and falls back to
    /// the new one.
    pub(crate) fn restyle(&mut self, options: ScreenOptions) {
        match &mut self.theme_before {
            Some(before) => *before = options.theme,
            None => self.theme = options.theme,
        }
        self.color = options.color;
        self.glyphs = if options.ascii { &ASCII } else { &UNICODE };
        self.placeholder = options.placeholder;
        self.spinner = options.spinner;
        self.transcript.forget_layout();
        self.shown_transcript_mut().forget_layout();
        self.panel.forget_layout();
        if let Some(rewind) = &mut self.rewind {
            rewind.forget_layout();
        }
        self.repaint = true;
    }

    /// The transcript in view: that of a child while one is watched.
    pub(crate) fn shown_transcript(&self) -> &Transcript {
        self.agents.shown.as_ref().map_or(&self.transcript, |shown| &shown.transcript)
    }

    /// The same, to scroll and fold.
    pub(crate) fn shown_transcript_mut(&mut self) -> &mut Transcript {
        match &mut self.agents.shown {
            Some(shown) => &mut shown.transcript,
            None => &mut self.transcript,
        }
    }

    /// The transcript's page.
    pub(crate) fn page(&self) -> Page {
        Page::new(self.size.0 - self.panel_width(), self.glyphs, self.now)
    }

    /// Columns of the side panel.
    pub(crate) fn panel_width(&self) -> u16 {
        self.panel.width(self.size.0, &self.session)
    }

    /// The question whether to raise a bound, unless a request for a decision comes first.
    pub(crate) fn shown_budget(&self) -> Option<&BudgetSheet> {
        let first = self.approvals.shown().is_none();
        self.budget.as_ref().filter(|budget| first && !budget.is_hidden())
    }

    /// Something stands in the place of the composer.
    pub(crate) fn shows_sheet(&self) -> bool {
        self.approvals.shown().is_some()
            || self.shown_budget().is_some()
            || self.shown_rewind().is_some()
    }

    /// The sheet before going back, unless a question of the runtime comes first.
    pub(crate) fn shown_rewind(&self) -> Option<&Rewind> {
        let first = self.approvals.shown().is_none() && self.shown_budget().is_none();
        self.rewind.as_ref().filter(|rewind| first && rewind.is_shown())
    }

    /// Columns for the draft.
    pub(crate) fn composer_width(&self) -> usize {
        usize::from(self.size.0).saturating_sub(if self.is_roomy() { 6 } else { 4 }).max(2)
    }

    /// There are columns for margins.
    pub(crate) fn is_roomy(&self) -> bool {
        self.size.0 >= 60
    }

    /// A turn runs and nobody asked it to stop.
    pub(crate) fn is_working(&self) -> bool {
        self.session.turn.is_some()
    }

    /// Lays out what is in view; asks for older items and for highlighting. Unless it must be `fresh`,
    /// what merely grew may show as it was.
    pub(crate) fn prepare(&mut self, fresh: bool) -> Vec<Action> {
        let width = crate::view::sheet_width(self);
        if let Some(rewind) = &mut self.rewind {
            rewind.layout(width, self.glyphs);
        }
        self.places = crate::view::places(self);
        let Rect { width, height, .. } = self.places.panel;
        if width > 0 {
            let width = usize::from(width.saturating_sub(FRAME_COLUMNS));
            self.panel.layout(&self.session, width, usize::from(height), self.glyphs);
        }
        if let Some(page) = self.layers.last().map(|popup| crate::view::popup_page(self, popup))
            && let Some(popup) = self.layers.last_mut()
        {
            popup.page = page;
        }
        if self.approvals.shown().is_some_and(|sheet| sheet.scrolled > 0) {
            let most = crate::view::approval_scroll_limit(self);
            self.approvals.limit_scroll(most);
        }
        if self.rewind.as_ref().is_some_and(|rewind| rewind.scrolled > 0) {
            let most = crate::view::rewind_scroll_limit(self);
            if let Some(rewind) = &mut self.rewind {
                rewind.scrolled = rewind.scrolled.min(most);
            }
        }
        let page = Page { fresh, ..self.page() };
        let height = usize::from(self.places.transcript.height);
        if let Some(shown) = &mut self.agents.shown {
            // It came whole, or as much of it as is kept. Its code stays without colours.
            shown.transcript.layout(&page, height);
            return Vec::new();
        }
        let older = self.transcript.layout(&page, height);
        let mut actions: Vec<Action> = self
            .transcript
            .take_wanted()
            .into_iter()
            .map(|(owner, code)| Action::Highlight(owner, code))
            .collect();
        if let Some(before) = older {
            let limit = u32::from(self.size.1).max(40) * 2;
            actions.push(Action::Send(loon_api::Command::History { before, limit }));
        }
        actions
    }
}
