//! Isolated tools: programs in a child process of their own, which are asked in lines of JSON.
//!
//! A request is `{"id", "input"}`, its answer `{"id", "ok"}` or `{"id", "error"}`. The child stays for
//! the next call. It may be started ahead; a call that finds none starts one. Lines that are no answer
//! to the call are passed over: what a program says unasked answers nothing, and no id can be guessed.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
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
    /// The child that waits for a call.
    idle: Mutex<Option<LineChild>>,
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

    fn idle(&self) -> MutexGuard<'_, Option<LineChild>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the child ahead of the first call, unless there is one. A failure is silent: the call
    /// meets it again, and tells. Must be called inside a tokio runtime.
    pub fn warm(&self) {
        let mut idle = self.idle();
        if idle.as_ref().is_none_or(LineChild::has_ended) {
            *idle = (self.make)().start_lines().ok();
        }
    }

    /// Asks the program. It is ended when `cancel` fires, or with this future.
    pub async fn call(
        &self,
        _admitted: Admitted,
        input: &Value,
        cancel: &CancellationToken,
    ) -> Result<Value, IsolatedError> {
        let id = new_id();
        let request = json!({"id": id, "input": input}).to_string();
        let ready = self.idle().take().filter(|child| !child.has_ended());
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
        let mut passed_over = 0;
        let answer = loop {
            let line = tokio::select! {
                biased;
                () = cancel.cancelled() => match passed_over {
                    0 => {
                        child.stop().await;
                        return Err(IsolatedError::Stopped);
                    }
                    lines => break Err(format!("{lines} lines, and none answers the call")),
                },
                line = child.next(MAX_ANSWER) => line,
            };
            match line {
                Ok(Some(line)) => match serde_json::from_slice::<Answer>(&line) {
                    Ok(answer) if answer.id == id => break Ok(answer),
                    Ok(_) | Err(_) => passed_over += 1,
                },
                Ok(None) => break Err("it ended".to_owned()),
                Err(error) => break Err(error.to_string()),
            }
        };
        match answer {
            Ok(Answer { ok, error, .. }) if ok.is_some() != error.is_some() => {
                self.idle().get_or_insert(child);
                match (ok, error) {
                    (Some(ok), _) => Ok(ok),
                    (None, Some(Value::String(words))) => Err(IsolatedError::Failed(words)),
                    (None, error) => Err(IsolatedError::Failed(json!(error).to_string())),
                }
            }
            Ok(_) => {
                let reason = "an answer needs either ok or error".to_owned();
                Err(no_answer(&child, reason).await)
            }
            Err(reason) => Err(no_answer(&child, reason).await),
        }
    }
}

/// A number that nobody can guess, and that any program can hold.
fn new_id() -> u64 {
    RandomState::new().build_hasher().finish() & 0x7fff_ffff
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

    /// Answers each call with `answer`, in which `$n` is the number of calls so far, and then runs
    /// `more`.
    fn answering(answer: &str, more: &str) -> String {
        format!(
            r#"n=0; while read -r it; do n=$((n+1)); id=${{it#*:}}; id=${{id%%,*}}; echo "{{\"id\":$id,{answer}}}"; {more}
            done"#
        )
    }

    fn counting() -> String {
        answering(r#"\"ok\":$n"#, "")
    }

    #[tokio::test]
    async fn k067_k072_a_child_started_ahead_answers_the_first_call_and_stays() {
        let (tool, starts) = tool(&counting());
        tool.warm();
        tool.warm();
        assert_eq!(starts.load(Ordering::SeqCst), 1);
        assert_eq!((ask(&tool).await.unwrap(), ask(&tool).await.unwrap()), (json!(1), json!(2)));
        assert_eq!(starts.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn k066_without_a_child_ahead_the_call_starts_one() {
        let (tool, starts) = tool(&counting());
        assert_eq!(starts.load(Ordering::SeqCst), 0);
        assert_eq!(ask(&tool).await.unwrap(), json!(1));
        let missing = IsolatedTool::new(|| Spawner::default().program("/no/such", Path::new("/")));
        missing.warm();
        assert!(matches!(ask(&missing).await, Err(IsolatedError::Start(_))));
    }

    #[tokio::test]
    async fn an_error_is_an_answer_and_neither_ends_the_child() {
        let (failing, starts) = tool(&answering(r#"\"error\":\"no such page\""#, ""));
        let error = ask(&failing).await.unwrap_err();
        assert!(
            matches!(&error, IsolatedError::Failed(words) if words == "no such page"),
            "{error}"
        );
        let (wrong, _) = tool(&answering(r#"\"neither\":0"#, ""));
        let error = ask(&wrong).await.unwrap_err();
        assert!(matches!(&error, IsolatedError::NoAnswer { .. }), "{error}");
        assert!(wrong.idle().is_none() && starts.load(Ordering::SeqCst) == 1);
        let (dying, _) = tool("read -r it; echo oh no >&2; exit 2");
        let error = ask(&dying).await.unwrap_err();
        assert_eq!(error.to_string(), "the program gave no answer: it ended: oh no");
    }

    #[tokio::test]
    async fn what_is_said_unasked_is_no_answer_to_the_next_call() {
        // After each answer: words, the same answer again, and one to a call that may come.
        let more = r#"echo words; echo "{\"id\":$id,\"ok\":99}"; echo "{\"id\":2,\"ok\":99}""#;
        let (tool, starts) = tool(&answering(r#"\"ok\":$n"#, more));
        for wanted in 1..=4 {
            assert_eq!(ask(&tool).await.unwrap(), json!(wanted));
        }
        assert_eq!(starts.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn one_that_only_says_other_things_is_told_apart_when_it_is_stopped() {
        let (tool, _) = tool("echo words; while :; do sleep 0.01; echo words; done");
        let cancel = CancellationToken::new();
        let input = json!({});
        let call = tool.call(Admitted::new(EffectKey::new("k")), &input, &cancel);
        let stop = async {
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            cancel.cancel();
        };
        let error = tokio::join!(call, stop).0.unwrap_err();
        assert!(error.to_string().contains("none answers the call"), "{error}");
    }

    #[tokio::test]
    async fn a_stopped_call_ends_the_child_with_all_it_started() {
        let (tool, _) = tool("sleep 1000 & wait");
        let cancel = CancellationToken::new();
        cancel.cancel();
        let admitted = Admitted::new(EffectKey::new("k"));
        let stopped = tool.call(admitted, &json!({}), &cancel).await;
        assert!(matches!(stopped, Err(IsolatedError::Stopped)));
        assert!(tool.idle().is_none());
    }
}
