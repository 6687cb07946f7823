//! The permission rules and the mode as an authority at the gate.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use loon_api::{Mode, PathAccess, PermissionRule, RuleEffect, RuleOrigin, ToolClass, ToolSpec};
use loon_kernel::{Authority, AuthorityRequest, Verdict};
use loon_permission::{Policy, Request};

use crate::guidance::hidden_from_reading;

/// Decides by rules and mode. Shared by the gate, which asks, and the session's owner, which
/// changes the mode and keeps "always" decisions. A child of the session shares the state, so that
/// what the user decides holds for it at once.
pub struct PermissionAuthority {
    state: Arc<RwLock<State>>,
    copy: Option<Workplace>,
}

/// A copy of the workspace that is judged in its place.
struct Workplace {
    root: PathBuf,
    /// The policy it was made of, and what was made.
    made: Mutex<Option<(Arc<Policy>, Arc<Policy>)>>,
}

impl Workplace {
    fn policy(&self, original: Arc<Policy>) -> Arc<Policy> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, policy)) = &*made
            && Arc::ptr_eq(of, &original)
        {
            return Arc::clone(policy);
        }
        let policy = Arc::new(original.moved(self.root.clone()));
        *made = Some((original, Arc::clone(&policy)));
        policy
    }
}

struct State {
    policy: Arc<Policy>,
    /// Rules that hold for this session alone and outlive changes of the settings.
    kept: Vec<(PermissionRule, RuleOrigin)>,
    mode: Mode,
}

impl PermissionAuthority {
    /// An authority over these rules.
    pub fn new(policy: Arc<Policy>, mode: Mode) -> Self {
        Self { state: Arc::new(RwLock::new(State { policy, kept: Vec::new(), mode })), copy: None }
    }

    /// An authority that shares rules and mode with this one and judges a copy of the workspace in
    /// the folder `root`.
    #[must_use]
    pub fn for_copy(&self, root: PathBuf) -> Self {
        Self {
            state: Arc::clone(&self.state),
            copy: Some(Workplace { root, made: Mutex::default() }),
        }
    }

    /// The mode in force.
    pub fn mode(&self) -> Mode {
        self.read(|state| state.mode)
    }

    /// Changes the mode; holds for the next decision.
    pub fn set_mode(&self, mode: Mode) {
        self.write(|state| state.mode = mode);
    }

    /// Adds an allow rule that the settings hold too; holds for the next decision.
    pub fn allow(&self, rule: PermissionRule, origin: RuleOrigin) {
        self.write(|state| state.add(rule, origin));
    }

    /// Adds an allow rule for this session alone; holds for the next decision.
    pub fn allow_for_session(&self, rule: PermissionRule) {
        let origin = RuleOrigin { source: "session".to_owned(), line: None };
        self.write(|state| {
            state.kept.push((rule.clone(), origin.clone()));
            state.add(rule, origin);
        });
    }

    /// Takes the rules of changed settings in place of the former; those of the session stay.
    pub fn replace_policy(&self, policy: Arc<Policy>) {
        self.write(|state| {
            state.policy = policy;
            for (rule, origin) in state.kept.clone() {
                state.add(rule, origin);
            }
        });
    }

    /// True if no call of the tool can be allowed, so that it need not be offered.
    pub fn denies_tool(&self, tool: &ToolSpec) -> bool {
        self.read(|state| state.policy.denies_tool(&tool.name, tool.class, state.mode))
    }

    /// Folders and files that are kept from a model that reads.
    pub(crate) fn hidden_from_reading(&self) -> Vec<PathBuf> {
        hidden_from_reading(&self.policy())
    }

    /// Files that a shell line names, with what becomes of them.
    pub(crate) fn files_of_line(&self, line: &str, cwd: &Path) -> Vec<(PathAccess, PathBuf)> {
        self.policy().files_of_line(line, cwd, &resolve_existing)
    }

    /// The rules in force where this authority judges.
    fn policy(&self) -> Arc<Policy> {
        let policy = self.read(|state| Arc::clone(&state.policy));
        match &self.copy {
            Some(copy) => copy.policy(policy),
            None => policy,
        }
    }

    fn read<T>(&self, with: impl FnOnce(&State) -> T) -> T {
        with(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write(&self, with: impl FnOnce(&mut State)) {
        with(&mut self.state.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl State {
    fn add(&mut self, rule: PermissionRule, origin: RuleOrigin) {
        Arc::make_mut(&mut self.policy).add(RuleEffect::Allow, rule, origin);
    }
}

impl Authority for PermissionAuthority {
    fn hidden(&self, tool: &ToolSpec) -> Vec<PathBuf> {
        if tool.class != ToolClass::Reads {
            return Vec::new();
        }
        self.policy().hidden(&tool.name, &resolve_existing)
    }

    fn decide(&self, request: &AuthorityRequest<'_>) -> Verdict {
        let (policy, mode) = (self.policy(), self.mode());
        let request = Request {
            tool: &request.tool.name,
            class: request.tool.class,
            subjects: request.subjects,
            mode,
        };
        let judgement = policy.decide(&request, &resolve_existing);
        match judgement.effect {
            RuleEffect::Allow => Verdict::Allow,
            RuleEffect::Ask => Verdict::Ask {
                reasons: judgement.reasons(),
                always: policy.always(&request, &resolve_existing),
            },
            RuleEffect::Deny => Verdict::Deny { reasons: judgement.reasons() },
        }
    }
}

/// Follows the links of the part of a path that exists; the rest stays as written.
pub fn resolve_existing(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut existing = path;
    loop {
        if let Ok(real) = existing.canonicalize() {
            return rest.iter().rev().fold(real, |path, name| path.join(name));
        }
        match (existing.parent(), existing.file_name()) {
            (Some(parent), Some(name)) => {
                rest.push(name);
                existing = parent;
            }
            _ => return path.to_path_buf(),
        }
    }
}
