//! The children of the session, and the one whose transcript is shown in place of the session's own.

use loon_api::event::SubagentStarted;
use loon_api::{AgentEvent, SubagentState, SubagentSummary};

use crate::transcript::Transcript;

/// A child as it is shown.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    /// How far it has come.
    pub(crate) summary: SubagentSummary,
    /// What it was told, if that is known.
    pub(crate) task: String,
    /// Its own Git worktree.
    pub(crate) worktree: Option<String>,
}

impl Agent {
    /// Where it stands, in a word or a few.
    pub(crate) fn state_words(&self) -> String {
        match (self.summary.state, self.summary.status) {
            (SubagentState::Ended, Some(status)) => status.words().to_owned(),
            (SubagentState::Stalled, _) => {
                let minutes = self.summary.quiet_ms.unwrap_or(0) / 60_000;
                format!("silent for {minutes} min")
            }
            (state, _) => state.words().to_owned(),
        }
    }
}

/// The transcript of a child.
#[derive(Debug)]
pub(crate) struct Shown {
    /// Its short name.
    pub(crate) id: String,
    /// What it did, as far as it was told.
    pub(crate) transcript: Transcript,
}

/// All children of the session that the screen knows of, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    list: Vec<Agent>,
    /// The child whose transcript is shown.
    pub(crate) shown: Option<Shown>,
}

impl Agents {
    /// Takes in one event. True if it changed the list.
    pub(crate) fn apply(&mut self, event: &AgentEvent) -> bool {
        match event {
            AgentEvent::SubagentStarted(started) => {
                let agent = begun(started);
                match self.position(&started.id) {
                    Some(at) => self.list[at] = agent,
                    None => self.list.push(agent),
                }
            }
            AgentEvent::SubagentProgressed(progressed) => {
                let summary = progressed.agent.clone();
                match self.position(&summary.id) {
                    Some(at) => self.list[at].summary = summary,
                    None => {
                        self.list.push(Agent { summary, task: String::new(), worktree: None });
                    }
                }
            }
            AgentEvent::SubagentFinished(finished) => {
                let Some(at) = self.position(&finished.id) else { return false };
                let summary = &mut self.list[at].summary;
                summary.state = SubagentState::Ended;
                summary.status = Some(finished.status);
                summary.steps = finished.steps.into();
                summary.tokens = finished.usage.total();
                summary.cost = finished.cost;
                summary.quiet_ms = None;
            }
            _ => return false,
        }
        true
    }

    /// All of them, oldest first.
    pub(crate) fn list(&self) -> &[Agent] {
        &self.list
    }

    /// The one with this name.
    pub(crate) fn find(&self, id: &str) -> Option<&Agent> {
        self.position(id).map(|at| &self.list[at])
    }

    /// Those that have not ended.
    pub(crate) fn at_work(&self) -> usize {
        let ended = |agent: &&Agent| agent.summary.state != SubagentState::Ended;
        self.list.iter().filter(ended).count()
    }

    /// One of them is silent.
    pub(crate) fn any_stalled(&self) -> bool {
        self.list.iter().any(|agent| agent.summary.state == SubagentState::Stalled)
    }

    fn position(&self, id: &str) -> Option<usize> {
        self.list.iter().position(|agent| agent.summary.id == id)
    }
}

fn begun(started: &SubagentStarted) -> Agent {
    let summary = SubagentSummary {
        id: started.id.clone(),
        agent: started.agent.clone(),
        child: started.child,
        state: SubagentState::Running,
        status: None,
        model: started.model.clone(),
        effort: started.effort,
        background: started.background,
        steps: 0,
        tokens: 0,
        cost: loon_api::Cost::default(),
        call: String::new(),
        quiet_ms: None,
    };
    Agent { summary, task: started.task.clone(), worktree: started.worktree.clone() }
}
