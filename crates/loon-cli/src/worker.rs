//! Workers: processes that run prompts for others, and the way to them.
//!
//! The seam is `loon_kernel::Dispatcher`. HTTP lives here and not in the kernel, which must not know
//! it, and there is no floor between them that both ends share.

mod client;
mod front;
mod prompt;
mod schedules;
mod server;
mod stdio;
mod token;

use std::sync::Arc;

use loon_exec::Spawner;
use loon_kernel::{
    ChildDispatcher, Circuits, Dispatcher, SupervisingDispatcher, SupervisionPolicy, SystemClock,
};

pub(crate) use self::client::causes;
pub(crate) use self::front::Elsewhere;
pub(crate) use self::prompt::{PromptInput, Prompts};
pub(crate) use self::schedules::{fire, of_settings as schedules_of_settings};
pub(crate) use self::server::serve;
pub(crate) use self::stdio::serve_parent;
pub(crate) use self::token::Token;
use crate::failure::Failure;
use crate::wiring::Setup;

/// The name of the worker that is a process of its own.
const CHILD: &str = "child";

/// The only flow that a worker runs, and its version.
const PROMPT: (&str, u32) = ("prompt", 1);

/// The way to the worker of this name.
pub(crate) fn dispatcher(name: &str, setup: &Setup) -> Result<Arc<dyn Dispatcher>, Failure> {
    let workers = &setup.loaded.settings.workers;
    match workers.get(name) {
        Some(worker) => {
            let token = match &worker.token_env {
                Some(variable) => Some(Token::from_variable(variable)?.ok_or_else(|| {
                    Failure::usage(format!("The token of the worker {name} is missing."))
                        .hint(format!("Set the variable {variable}."))
                })?),
                None => None,
            };
            let remote = client::RemoteDispatcher::new(name, &worker.url, token)?;
            Ok(Arc::new(SupervisingDispatcher::new(
                Arc::new(remote),
                format!("worker:{}", worker.url),
                Circuits::new(Arc::new(SystemClock)),
                SupervisionPolicy::default(),
            )))
        }
        None if name == CHILD => {
            let program = std::env::current_exe()?;
            let root = setup.root.clone();
            Ok(Arc::new(ChildDispatcher::new(move || {
                // It reads the settings itself, keys included.
                Spawner::default().program(&program, &root).args(["worker", "--stdio"])
            })))
        }
        None => {
            let known: Vec<&str> = workers.keys().map(String::as_str).chain([CHILD]).collect();
            Err(Failure::usage(format!("The settings have no worker called {name}."))
                .hint(format!("There are: {}.", known.join(", ")))
                .hint(format!("Add a [workers.{name}] section with its url and token_env.")))
        }
    }
}
