//! Guidance reaches the model with the first call that touches what it speaks of, and before anything
//! is changed there: a call that would change something under guidance the model had not seen is not
//! made, and its result is that guidance.

use std::collections::BTreeSet;
use std::path::PathBuf;

use loon_api::event::ItemCompleted;
use loon_api::{
    ErrorCode, ErrorInfo, Guidance, GuidanceScope, Item, ItemBody, PathAccess, Subject,
    ToolCallItem, ToolCallStatus, ToolResult,
};
use loon_kernel::{Authority as _, AuthorityRequest, Verdict};

use crate::conversation::{Given, step_of};
use crate::guidance::{GuidanceShelf, Piece};
use crate::runtime::RuntimeError;
use crate::session::Session;

/// Most bytes of guidance that come with one call. What has no room comes with the next.
const MAX_BROUGHT: usize = 64 * 1024;

const HELD: &str = "Not made yet: the project has instructions for what this call would change, and \
                    you had not seen them. Read them; make the call again if it agrees with them.";

/// What guidance means for one call.
#[derive(Debug, Default, PartialEq, Eq)]
struct Briefing {
    /// Comes with its result.
    guidance: Vec<Guidance>,
    /// It must not be made before the model has read that.
    hold: bool,
    bytes: usize,
}

impl Briefing {
    /// Adds a piece; `brought` are the files that other calls bring at the same time.
    fn add(
        &mut self,
        piece: &Piece,
        access: PathAccess,
        brought: &BTreeSet<String>,
        given: &Given,
    ) {
        let changes = access == PathAccess::Write;
        self.hold |= changes;
        if self.guidance.iter().any(|known| known.path == piece.path) {
            return;
        }
        if brought.contains(&piece.path) || given.has(&piece.path, &piece.sha256) {
            self.guidance.extend(changes.then(|| piece.named()));
        } else if self.bytes == 0 || self.bytes + piece.text.len() <= MAX_BROUGHT {
            self.bytes += piece.text.len();
            self.guidance.push(piece.given());
        }
    }
}

impl Session {
    /// Where the guidance of this session lies.
    pub(crate) fn guidance_shelf(&self) -> GuidanceShelf {
        let options = &self.deps.options;
        let hidden = self.authority.hidden_from_reading();
        GuidanceShelf::new(&options.cwd, options.user_guidance.as_deref(), hidden)
    }

    /// The guidance of every request, as `(whose it is, text)`.
    pub(super) fn general_guidance(&self) -> Vec<(String, String)> {
        let named = |piece: Piece| {
            let whose = match piece.scope {
                GuidanceScope::User => "The user's own".to_owned(),
                _ => "The project's".to_owned(),
            };
            (format!("{whose} {}", piece.path), piece.text)
        };
        self.guidance_shelf().general().pieces.into_iter().map(named).collect()
    }

    /// Puts the guidance that is due into calls that are about to be made. Those that must not be made
    /// before the model has read it are ended, and not among what comes back.
    pub(super) async fn brief(&mut self, calls: Vec<Item>) -> Result<Vec<Item>, RuntimeError> {
        let mut brought = BTreeSet::new();
        let mut going = Vec::with_capacity(calls.len());
        for mut item in calls {
            let briefing = self.briefing_for(&item, &brought);
            let ItemBody::ToolCall(call) = &mut item.body else { continue };
            let with_text = briefing.guidance.iter().filter(|guidance| guidance.text.is_some());
            brought.extend(with_text.map(|guidance| guidance.path.clone()));
            call.guidance = briefing.guidance;
            if briefing.hold {
                hold_back(call);
                let turn = item.turn;
                self.record(Some(turn), ItemCompleted { item }).await?;
            } else {
                going.push(item);
            }
        }
        Ok(going)
    }

    fn briefing_for(&self, item: &Item, brought: &BTreeSet<String>) -> Briefing {
        let mut briefing = Briefing::default();
        let touched = self.touched_by(item);
        if touched.is_empty() {
            return briefing;
        }
        let shelf = self.guidance_shelf();
        let rules = shelf.rules();
        let given = self.conversation.given();
        let answer = step_of(item);
        for (access, path) in touched {
            for piece in shelf.speaking_of(&path, &rules).pieces {
                let seen = given.had_before(&piece.path, &piece.sha256, answer);
                let known = given.has(&piece.path, &piece.sha256) && access == PathAccess::Read;
                if !seen && !known {
                    briefing.add(&piece, access, brought, &given);
                }
            }
        }
        briefing
    }

    /// Paths that a call would touch, absolute with their links followed. Nothing where it would not
    /// be made anyway.
    fn touched_by(&self, item: &Item) -> Vec<(PathAccess, PathBuf)> {
        let ItemBody::ToolCall(call) = &item.body else { return Vec::new() };
        let unmasked = self.turn.as_ref().and_then(|turn| turn.unmasked.get(&item.id));
        let arguments = unmasked.unwrap_or(&call.arguments);
        let tool = self.tools.iter().find(|tool| tool.spec().name == call.tool);
        let Some(tool) = tool.filter(|_| arguments.is_object()) else { return Vec::new() };
        let Ok(subjects) = tool.subjects(arguments) else { return Vec::new() };
        let request = AuthorityRequest { tool: tool.spec(), arguments, subjects: &subjects };
        if subjects.is_empty() || matches!(self.authority.decide(&request), Verdict::Deny { .. }) {
            return Vec::new();
        }
        let mut touched = Vec::new();
        for subject in subjects {
            match subject {
                Subject::Path { access, path } | Subject::Tree { access, path } => {
                    touched.push((access, path));
                }
                Subject::Command { line, cwd } => {
                    touched.extend(self.authority.files_of_line(&line, &cwd));
                    touched.push((PathAccess::Read, cwd));
                }
                Subject::Url { .. } => {}
            }
        }
        touched
    }
}

/// Ends a call that was not made.
fn hold_back(call: &mut ToolCallItem) {
    call.status = ToolCallStatus::Failed;
    call.result = Some(ToolResult::error(HELD));
    "instructions first".clone_into(&mut call.summary);
    let message = "the project has instructions for what this call would change";
    call.error = Some(ErrorInfo::new(ErrorCode::Conflict, message));
}
