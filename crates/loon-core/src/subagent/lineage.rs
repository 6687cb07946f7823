//! Where a session comes from: a person or program, or another session.

use std::sync::Arc;

use loon_api::Effort;

use crate::approval::ApprovalDesk;
use crate::authority::PermissionAuthority;
use crate::budget::SharedBudget;
use crate::profile::AgentProfile;

/// Where a session comes from.
pub(crate) enum Lineage {
    /// A front end opened it.
    Root,
    /// Another session handed it a task.
    Child(Box<Parentage>),
}

/// What a child has from its parent.
pub(crate) struct Parentage {
    /// Its name at the parent, before the ids of its requests for a decision.
    pub(crate) id: String,
    /// The parent's rules and mode, live.
    pub(crate) authority: Arc<PermissionAuthority>,
    /// Where the parent's front end answers.
    pub(crate) desk: Arc<ApprovalDesk>,
    /// The parent's budget, which it shares.
    pub(crate) budget: SharedBudget,
    /// What it is.
    pub(crate) profile: AgentProfile,
}

impl Lineage {
    pub(crate) fn is_child(&self) -> bool {
        matches!(self, Self::Child(_))
    }

    /// What comes before the ids of requests for a decision, so that they differ in the whole tree.
    pub(crate) fn approval_prefix(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Child(parent) => format!("{}/", parent.id),
        }
    }

    /// What the system text says of the part it plays.
    pub(crate) fn instruction(&self) -> Option<&str> {
        match self {
            Self::Root => None,
            Self::Child(parent) => Some(&parent.profile.instruction),
        }
    }

    pub(crate) fn effort(&self) -> Option<Effort> {
        match self {
            Self::Root => None,
            Self::Child(parent) => parent.profile.effort,
        }
    }

    /// True if it may have the tool.
    pub(crate) fn allows(&self, tool: &str) -> bool {
        match self {
            Self::Root => true,
            Self::Child(parent) => parent.profile.allows(tool),
        }
    }
}
