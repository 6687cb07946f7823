//! A script in place of a model: the same words every time, without network or key. It drives
//! `loon demo` and end-to-end tests.
//!
//! A script is a text of JSON objects, one a line; empty lines and lines that begin with `#` mean
//! nothing. Each line is a step, that is, one answer:
//!
//! ```json
//! {"thinking": "The test fails in add.", "text": "Let me look.", "calls": [{"name": "read", "arguments": {"path": "src/lib.rs"}}]}
//! {"when": {"result": "test result: ok"}, "text": "The tests pass."}
//! {"text": "Something is still wrong."}
//! ```
//!
//! | member | meaning |
//! |---|---|
//! | `text`, `thinking` | what the answer says; told word by word |
//! | `calls` | tool calls; `arguments` is an object, or a text to stand for arguments that are no JSON |
//! | `stop` | `end`, `tool_calls`, `length` or `refused`; by default what fits the calls |
//! | `delay_ms` | a pause before each word and each call; 0 by default |
//! | `when` | `{"user": TEXT, "result": TEXT}`: the step counts only if the last words of the user, and the last tool result, hold these texts |
//! | `error` | the step fails: `{"kind": KIND, "message": TEXT, "retry_after_ms": N, "times": N, "streamed": BOOL}` |
//!
//! Kinds of error are those of [`ModelErrorKind`] in snake case. With `times`, the step fails so
//! often and then answers. With `streamed`, text and thinking come before the failure.
//!
//! Which step answers depends on the conversation alone, so that a resumed session goes on where it
//! stood. Steps with `when` and the first one without that follows them form one *place*; the first
//! step of a place that counts is taken. The place is the number of answers since the last words of
//! the user: the first place answers a prompt, the next one the results of the first one's calls,
//! and so on. Past the last place, or where no step of a place counts, the answer says that the
//! script has ended.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use loon_api::{
    Answer, AnswerPart, AssistantPart, Message, ModelError, ModelErrorKind, ModelRequest,
    StopReason, Thinking, Usage, UserPart,
};
use loon_kernel::port::{EffectContext, Progress};
use serde::Deserialize;
use serde_json::Value;

use crate::provider::ScriptSource;

/// What the model says past the end of its script.
const ENDED: &str = "The script has ended: it holds no step for this.";

/// Why a script cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// Settings name none.
    #[error("a provider of kind `script` needs a script")]
    Missing,
    /// Its file cannot be read.
    #[error("cannot read the script {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A line is no step.
    #[error("line {line} of the script is no step: {source}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong.
        source: serde_json::Error,
    },
}

/// A script that has been read.
#[derive(Debug)]
pub(crate) struct Script {
    places: Vec<Vec<Step>>,
    /// How often a step has failed, by conversation, its length, and the step's line.
    failures: Mutex<HashMap<(String, usize, usize), u32>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    #[serde(skip)]
    line: usize,
    #[serde(default)]
    text: String,
    #[serde(default)]
    thinking: String,
    #[serde(default)]
    calls: Vec<Call>,
    stop: Option<StopReason>,
    #[serde(default)]
    delay_ms: u64,
    when: Option<When>,
    error: Option<Failure>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    name: String,
    #[serde(default = "no_arguments")]
    arguments: Value,
}

fn no_arguments() -> Value {
    Value::Object(serde_json::Map::new())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct When {
    user: Option<String>,
    result: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    kind: ModelErrorKind,
    message: String,
    retry_after_ms: Option<u64>,
    times: Option<u32>,
    #[serde(default)]
    streamed: bool,
}

/// Where a conversation stands, as far as a script cares.
#[derive(Debug, Default, PartialEq, Eq)]
struct Scene<'a> {
    user: String,
    result: &'a str,
    answers: usize,
}

impl<'a> Scene<'a> {
    fn of(messages: &'a [Message]) -> Self {
        let mut scene = Self::default();
        for message in messages {
            match message {
                Message::User(parts) => {
                    let texts = parts.iter().filter_map(|part| match part {
                        UserPart::Text(text) => Some(text.as_str()),
                        UserPart::Image { .. } => None,
                    });
                    scene = Self { user: texts.collect::<Vec<_>>().join("\n"), ..scene };
                    scene.answers = 0;
                }
                Message::Assistant(answer) => {
                    scene.answers += 1;
                    for part in &answer.parts {
                        if let AssistantPart::Call(call) = part {
                            scene.result = &call.result.text;
                        }
                    }
                }
            }
        }
        scene
    }

    fn fits(&self, when: &When) -> bool {
        let holds = |text: &str, wanted: &Option<String>| {
            wanted.as_ref().is_none_or(|wanted| text.contains(wanted))
        };
        holds(&self.user, &when.user) && holds(self.result, &when.result)
    }
}

impl Script {
    /// Reads a script.
    pub(crate) fn load(source: Option<&ScriptSource>) -> Result<Self, ScriptError> {
        match source {
            None => Err(ScriptError::Missing),
            Some(ScriptSource::Text(text)) => Self::parse(text),
            Some(ScriptSource::Path(path)) => {
                let text = std::fs::read_to_string(path).map_err(|source| ScriptError::Read {
                    path: path.display().to_string(),
                    source,
                })?;
                Self::parse(&text)
            }
        }
    }

    fn parse(text: &str) -> Result<Self, ScriptError> {
        let mut places = Vec::new();
        let mut place = Vec::new();
        for (line, text) in (1..).zip(text.lines().map(str::trim)) {
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let mut step: Step =
                serde_json::from_str(text).map_err(|source| ScriptError::Line { line, source })?;
            step.line = line;
            let is_last = step.when.is_none();
            place.push(step);
            if is_last {
                places.push(std::mem::take(&mut place));
            }
        }
        if !place.is_empty() {
            places.push(place);
        }
        Ok(Self { places, failures: Mutex::default() })
    }

    fn pick(&self, scene: &Scene<'_>) -> Option<&Step> {
        let place = self.places.get(scene.answers)?;
        place.iter().find(|step| step.when.as_ref().is_none_or(|when| scene.fits(when)))
    }

    /// Answers a request as the model `name` (`provider/model`).
    pub(crate) async fn answer(
        &self,
        name: &str,
        request: &ModelRequest,
        cx: &EffectContext,
    ) -> Result<Answer, ModelError> {
        let Some(step) = self.pick(&Scene::of(&request.messages)) else {
            let _ = cx.progress.send(Progress::Text(ENDED.to_owned())).await;
            return Ok(Answer {
                parts: vec![AnswerPart::Text(ENDED.to_owned())],
                stop: StopReason::End,
                usage: Usage::default(),
            });
        };
        let failure = step.error.as_ref().filter(|failure| self.fails(failure, step, request));
        if let Some(failure) = failure.filter(|failure| !failure.streamed) {
            return Err(failure.error(false));
        }
        let mut streamed = false;
        let is_whole = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => false,
            () = step.tell(failure.is_none(), cx, &mut streamed) => true,
        };
        if let Some(failure) = failure {
            return Err(failure.error(streamed));
        }
        if !is_whole {
            let mut error =
                ModelError::new(ModelErrorKind::Network, "stopped before the answer was complete");
            error.streamed = streamed;
            return Err(error);
        }
        Ok(step.whole(name))
    }

    /// Counts a try of a step that fails. False once it has failed often enough.
    fn fails(&self, failure: &Failure, step: &Step, request: &ModelRequest) -> bool {
        let Some(times) = failure.times else { return true };
        let key = (request.cache_key.clone(), request.messages.len(), step.line);
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry(key).or_default();
        let fails = *count < times;
        *count = count.saturating_add(1);
        fails
    }
}

impl Failure {
    fn error(&self, streamed: bool) -> ModelError {
        let mut error = ModelError::new(self.kind, self.message.clone());
        error.retry_after = self.retry_after_ms.map(Duration::from_millis);
        error.streamed = streamed;
        error
    }
}

impl Step {
    /// Tells thinking and text word by word, then the calls. Notes whether it told anything.
    async fn tell(&self, with_calls: bool, cx: &EffectContext, told: &mut bool) {
        let words = |text: &str| {
            text.split_inclusive(char::is_whitespace).map(str::to_owned).collect::<Vec<_>>()
        };
        let calls = self.calls.iter().filter(|_| with_calls);
        let calls = (0..).zip(calls).map(|(index, call)| Progress::Arguments {
            index,
            name: Some(call.name.clone()),
            fragment: match &call.arguments {
                Value::String(text) => text.clone(),
                arguments => arguments.to_string(),
            },
        });
        let thinking = words(&self.thinking).into_iter().map(Progress::Thinking);
        let text = words(&self.text).into_iter().map(Progress::Text);
        for progress in thinking.chain(text).chain(calls) {
            if self.delay_ms > 0 {
                tokio::time::sleep(Duration::from_millis(self.delay_ms)).await;
            }
            let _ = cx.progress.send(progress).await;
            *told = true;
        }
    }

    fn whole(&self, name: &str) -> Answer {
        let mut parts = Vec::new();
        if !self.thinking.is_empty() {
            parts.push(AnswerPart::Thinking(Thinking {
                text: self.thinking.clone(),
                model: name.to_owned(),
                opaque: None,
            }));
        }
        if !self.text.is_empty() {
            parts.push(AnswerPart::Text(self.text.clone()));
        }
        parts.extend(self.calls.iter().map(|call| AnswerPart::Call {
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        }));
        let usual = if self.calls.is_empty() { StopReason::End } else { StopReason::ToolCalls };
        Answer { parts, stop: self.stop.unwrap_or(usual), usage: Usage::default() }
    }
}

#[cfg(test)]
mod tests;
