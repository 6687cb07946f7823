//! Tools of servers elsewhere, which come and go while executions run.

use std::sync::Arc;

use loon_api::event::Notice;
use loon_api::{BoxFuture, McpServer, ToolSpec};
use tokio::sync::broadcast;

use crate::port::Tool;

/// Tools as they are at one moment.
pub type ToolList = Arc<[Arc<dyn Tool>]>;

/// Knows the servers of the settings and their tools, for all executions of a process.
pub trait RemoteTools: Send + Sync {
    /// Those known now, in an order that does not depend on which server came first.
    fn now(&self) -> ToolList;

    /// The tool of this name. While its server is on its way it is waited for, under that server's
    /// own time limit.
    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Arc<dyn Tool>>>;

    /// An execution begins, and these tools were loaded in it before. Gets ready what is worth it and
    /// waits for nothing. Called inside a tokio runtime.
    fn begin(&self, loaded: &[String]);

    /// Starts every server that is not there and waits until each is or has failed, but not for long.
    fn settle(&self) -> BoxFuture<'_, ()>;

    /// The servers, in the order of the settings.
    fn servers(&self) -> Vec<McpServer>;

    /// What a person should know from now on.
    fn news(&self) -> broadcast::Receiver<Notice>;

    /// The server says something else of the tool than when it was last called.
    fn is_changed(&self, tool: &ToolSpec) -> bool;
}

/// No servers.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRemoteTools;

impl RemoteTools for NoRemoteTools {
    fn now(&self) -> ToolList {
        Arc::new([])
    }

    fn find<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, Option<Arc<dyn Tool>>> {
        Box::pin(std::future::ready(None))
    }

    fn begin(&self, _loaded: &[String]) {}

    fn settle(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn servers(&self) -> Vec<McpServer> {
        Vec::new()
    }

    fn news(&self) -> broadcast::Receiver<Notice> {
        broadcast::channel(1).1
    }

    fn is_changed(&self, _tool: &ToolSpec) -> bool {
        false
    }
}
