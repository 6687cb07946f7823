//! Isolated tools: programs in a child process of their own, which are asked in lines of JSON.
//!
//! A request is `{"id", "input"}`, its answer `{"id", "ok"}` or `{"id", "error"}`. The child stays for
//! the next call. It may be started ahead; a call that finds none starts one.

use std::sync::{Mutex, MutexGuard, PoisonError};

use loon_exec::{LineChild, Spawn, SpawnError};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::port::Admitted;

/// Most bytes of an answer.
const MAX_ANSWER: usize = 4 * 1024 * 1024;

/// Makes the child.
type MakeChild = dyn Fn() -> Spawn + Send + Sync;

/// A program that answers in lines of JSON.
pub struct IsolatedTool {
    make: Box<MakeChild>,
    idle: Mutex<Idle>,
}

/// The child that waits for a call.
#[derive(Default)]
struct Idle {
    child: Option<LineChild>,
    calls: u64,
}

/// Why a call gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum IsolatedError {
    /// The program cannot be started.
    #[error(transparent)]
    Start(#[from] SpawnError),
    /// It ended, or said something that is no answer. It was ended.
    #[error("the program gave no answer: {reason}")]
    NoAnswer {
        /// What happened instead.
        reason: String,
    },
    /// It answered that it failed.
    #[error("{0}")]
    Failed(String),
    /// The call was stopped, and the program ended with all it started.
    #[error("the call was stopped")]
    Stopped,
}

#[derive(Deserialize)]
struct Answer {
    id: u64,
    #[serde(default)]
    ok: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

impl IsolatedTool {
    /// A program that `make` makes. Nothing is started yet.
    pub fn new(make: impl Fn() -> Spawn + Send + Sync + 'static) -> Self {
        Self { make: Box::new(make), idle: Mutex::default() }
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the child ahead of the first call, unless there is one. A failure is silent: the call
    /// meets it again, and tells. Must be called inside a tokio runtime.
    pub fn warm(&self) {
        let mut idle = self.idle();
        if idle.child.as_ref().is_none_or(LineChild::has_ended) {
            idle.child = (self.make)().start_lines().ok();
        }
    }

    /// Asks the program. It is ended when `cancel` fires, or with this future.
    pub async fn call(
        &self,
        _admitted: Admitted,
        input: &Value,
        cancel: &CancellationToken,
    ) -> Result<Value, IsolatedError> {
        let (ready, id) = {
            let mut idle = self.idle();
            idle.calls += 1;
            (idle.child.take().filter(|child| !child.has_ended()), idle.calls)
        };
        let request = json!({"id": id, "input": input}).to_string();
        let mut child = match ready {
            // One that has just ended is replaced; it cannot have heard the request.
            Some(child) if child.send(request.as_bytes()).await.is_ok() => child,
            _ => {
                let child = (self.make)().start_lines()?;
                if let Err(error) = child.send(request.as_bytes()).await {
                    return Err(no_answer(&child, error.to_string()).await);
                }
                child
            }
        };
        let line = tokio::select! {
            biased;
            line = child.next(MAX_ANSWER) => line,
            () = cancel.cancelled() => {
                child.stop().await;
                return Err(IsolatedError::Stopped);
            }
        };
        let answer = match line {
            Ok(Some(line)) => serde_json::from_slice::<Answer>(&line)
                .map_err(|error| format!("a line that is no answer: {error}")),
            Ok(None) => Err("it ended".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        match answer {
            Ok(Answer { id: of, ok, error }) if of == id && ok.is_some() != error.is_some() => {
                self.idle().child.get_or_insert(child);
                match (ok, error) {
                    (Some(ok), _) => Ok(ok),
                    (None, Some(Value::String(words))) => Err(IsolatedError::Failed(words)),
                    (None, error) => Err(IsolatedError::Failed(json!(error).to_string())),
                }
            }
            Ok(_) => {
                let reason = format!("an answer needs the id {id} and either ok or error");
                Err(no_answer(&child, reason).await)
            }
            Err(reason) => Err(no_answer(&child, reason).await),
        }
    }
}

/// A child that cannot be understood is ended; what it said on standard error may tell why.
async fn no_answer(child: &LineChild, reason: String) -> IsolatedError {
    let said = child.stop().await.map(|ended| ended.errors).unwrap_or_default();
    let said = said.trim();
    let reason = if said.is_empty() { reason } else { format!("{reason}: {said}") };
    IsolatedError::NoAnswer { reason }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use loon_api::EffectKey;
    use loon_exec::Spawner;

    use super::*;

    fn tool(line: &str) -> (IsolatedTool, Arc<AtomicUsize>) {
        let (line, starts) = (line.to_owned(), Arc::new(AtomicUsize::new(0)));
        let counter = Arc::clone(&starts);
        let tool = IsolatedTool::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
            Spawner::default().bash(&line, Path::new("/"))
        });
        (tool, starts)
    }

    async fn ask(tool: &IsolatedTool) -> Result<Value, IsolatedError> {
        let admitted = Admitted::new(EffectKey::new("k"));
        tool.call(admitted, &json!({"n": 1}), &CancellationToken::new()).await
    }

    /// Answers with the number of calls it has heard.
    const COUNTS: &str = r#"n=0; while read -r it; do n=$((n+1)); id=${it#*:}; id=${id%%,*}; echo "{\"id\":$id,\"ok\":$n}"; done"#;

    #[tokio::test]
    async fn k067_k072_a_child_started_ahead_answers_the_first_call_and_stays() {
        let (tool, starts) = tool(COUNTS);
        tool.warm();
        tool.warm();
        assert_eq!(starts.load(Ordering::SeqCst), 1);
        assert_eq!((ask(&tool).await.unwrap(), ask(&tool).await.unwrap()), (json!(1), json!(2)));
        assert_eq!(starts.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn k066_without_a_child_ahead_the_call_starts_one() {
        let (tool, starts) = tool(COUNTS);
        assert_eq!(starts.load(Ordering::SeqCst), 0);
        assert_eq!(ask(&tool).await.unwrap(), json!(1));
        let missing = IsolatedTool::new(|| Spawner::default().program("/no/such", Path::new("/")));
        missing.warm();
        assert!(matches!(ask(&missing).await, Err(IsolatedError::Start(_))));
    }

    #[tokio::test]
    async fn an_error_is_an_answer_and_nonsense_ends_the_child() {
        let (failing, starts) =
            tool(r#"while read -r it; do echo '{"id":1,"error":"no such page"}'; done"#);
        let error = ask(&failing).await.unwrap_err();
        assert!(
            matches!(&error, IsolatedError::Failed(words) if words == "no such page"),
            "{error}"
        );
        // The second answer has the id of the first call.
        let error = ask(&failing).await.unwrap_err();
        assert!(matches!(&error, IsolatedError::NoAnswer { .. }), "{error}");
        assert_eq!(starts.load(Ordering::SeqCst), 1);
        let (dying, _) = tool("read -r it; echo oh no >&2; exit 2");
        let error = ask(&dying).await.unwrap_err();
        assert_eq!(error.to_string(), "the program gave no answer: it ended: oh no");
    }

    #[tokio::test]
    async fn a_stopped_call_ends_the_child_with_all_it_started() {
        let (tool, _) = tool("sleep 1000 & wait");
        let cancel = CancellationToken::new();
        cancel.cancel();
        let admitted = Admitted::new(EffectKey::new("k"));
        let stopped = tool.call(admitted, &json!({}), &cancel).await;
        assert!(matches!(stopped, Err(IsolatedError::Stopped)));
        assert!(tool.idle().child.is_none());
    }
}
