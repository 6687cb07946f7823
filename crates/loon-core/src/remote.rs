//! Tools of servers elsewhere, as one session has them.

use std::sync::Arc;

use loon_api::event::{McpListed, Notice};
use loon_api::{BoxFuture, McpServer, McpState, Mode, ToolSpec};
use loon_kernel::{Authority, AuthorityRequest, RemoteTools, Tool, ToolList, Verdict};
use tokio::sync::broadcast;

use crate::authority::PermissionAuthority;
use crate::profile::AgentProfile;
use crate::session::Session;
use crate::subagent::Lineage;
use crate::tool_search::ToolSearch;

/// The remote tools that a session may have: all, or what a child's profile leaves.
pub(crate) fn permitted(remote: &Arc<dyn RemoteTools>, lineage: &Lineage) -> Arc<dyn RemoteTools> {
    match lineage {
        Lineage::Root => Arc::clone(remote),
        Lineage::Child(parent) => {
            let (remote, profile) = (Arc::clone(remote), parent.profile.clone());
            Arc::new(Permitted { remote, profile })
        }
    }
}

/// What a profile leaves of the remote tools.
struct Permitted {
    remote: Arc<dyn RemoteTools>,
    profile: AgentProfile,
}

impl RemoteTools for Permitted {
    fn now(&self) -> ToolList {
        let tools = self.remote.now();
        tools.iter().filter(|tool| self.profile.allows(&tool.spec().name)).cloned().collect()
    }

    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Arc<dyn Tool>>> {
        if self.profile.allows(name) {
            self.remote.find(name)
        } else {
            Box::pin(std::future::ready(None))
        }
    }

    fn begin(&self, loaded: &[String]) {
        self.remote.begin(loaded);
    }

    fn settle(&self) -> BoxFuture<'_, ()> {
        self.remote.settle()
    }

    fn servers(&self) -> Vec<McpServer> {
        self.remote.servers()
    }

    fn news(&self) -> broadcast::Receiver<Notice> {
        self.remote.news()
    }

    fn is_changed(&self, tool: &ToolSpec) -> bool {
        self.remote.is_changed(tool)
    }
}

/// Asks anew, whatever rules allow, about a tool whose server says something else of it than when it
/// was last called: what was allowed was the other tool.
pub(crate) struct Definitions {
    pub(crate) remote: Arc<dyn RemoteTools>,
    pub(crate) permissions: Arc<PermissionAuthority>,
}

impl Authority for Definitions {
    fn decide(&self, request: &AuthorityRequest<'_>) -> Verdict {
        if self.permissions.mode() == Mode::Bypass || !self.remote.is_changed(request.tool) {
            return Verdict::Allow;
        }
        let name = &request.tool.name;
        let reason =
            format!("{name}: its server describes it in other words than when it was last called.");
        Verdict::Ask { reasons: vec![reason], always: None }
    }
}

/// The next thing that a person should know of the servers; never any if nobody tells.
pub(crate) async fn next_notice(news: &mut broadcast::Receiver<Notice>) -> Notice {
    loop {
        match news.recv().await {
            Ok(notice) => return notice,
            // What was missed shows in the list of servers.
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

impl Session {
    /// The tools of the session, with those of servers as they are now.
    pub(crate) fn tools_now(&self) -> ToolList {
        let remote = self.remote.now();
        let own = |tool: &&Arc<dyn Tool>| {
            self.tools.iter().any(|own| own.spec().name == tool.spec().name)
        };
        let remote = remote.iter().filter(|tool| !own(tool));
        self.tools.iter().chain(remote).cloned().collect()
    }

    /// Servers get ready for what this session had of them, and for what settings want started ahead.
    pub(crate) fn begin_remote(&self) {
        if !self.lineage.is_child() {
            self.remote.begin(&self.conversation.record().loaded_tools);
        }
    }

    /// The servers that the model is told of: those in use, if it can search and may call any of them.
    pub(crate) fn server_names(&self, offered: &[ToolSpec]) -> Vec<String> {
        let searches = offered.iter().any(|tool| tool.name == ToolSearch::NAME);
        if !searches || self.authority.mode() == Mode::Plan {
            return Vec::new();
        }
        let servers = self.remote.servers().into_iter();
        servers.filter(|server| server.state != McpState::Off).map(|server| server.name).collect()
    }

    pub(crate) async fn list_mcp(&self) {
        let servers = self.remote.servers();
        self.recorder.pass(None, McpListed { servers }).await;
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use loon_api::{RuleSet, ToolClass};
    use loon_kernel::NoRemoteTools;
    use loon_permission::Policy;
    use serde_json::json;

    use super::*;

    /// Every tool is another one than it was.
    struct Changed(NoRemoteTools);

    impl RemoteTools for Changed {
        fn now(&self) -> ToolList {
            self.0.now()
        }

        fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Arc<dyn Tool>>> {
            self.0.find(name)
        }

        fn begin(&self, loaded: &[String]) {
            self.0.begin(loaded);
        }

        fn settle(&self) -> BoxFuture<'_, ()> {
            self.0.settle()
        }

        fn servers(&self) -> Vec<McpServer> {
            self.0.servers()
        }

        fn news(&self) -> broadcast::Receiver<Notice> {
            self.0.news()
        }

        fn is_changed(&self, _: &ToolSpec) -> bool {
            true
        }
    }

    #[test]
    fn a_changed_tool_is_asked_about_whatever_rules_say_but_in_bypass() {
        let policy = Arc::new(Policy::new(RuleSet::default(), None, PathBuf::from("/w")));
        let tool = ToolSpec {
            name: "mcp__lab__find".to_owned(),
            description: String::new(),
            parameters: json!({"type": "object"}),
            class: ToolClass::Remote,
        };
        let verdict = |remote: Arc<dyn RemoteTools>, mode| {
            let permissions = Arc::new(PermissionAuthority::new(Arc::clone(&policy), mode));
            let request = AuthorityRequest { tool: &tool, arguments: &json!({}), subjects: &[] };
            Definitions { remote, permissions }.decide(&request)
        };
        let changed = || Arc::new(Changed(NoRemoteTools));
        for mode in [Mode::Default, Mode::Auto] {
            let Verdict::Ask { reasons, always } = verdict(changed(), mode) else {
                panic!("nobody was asked in {mode:?}")
            };
            assert!(reasons[0].contains("mcp__lab__find") && always.is_none());
        }
        assert_eq!(verdict(changed(), Mode::Bypass), Verdict::Allow);
        assert_eq!(verdict(Arc::new(NoRemoteTools), Mode::Default), Verdict::Allow);
    }
}
