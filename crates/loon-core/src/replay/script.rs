//! A session as a script: the recorded answers as steps of the scripted provider, so that the real
//! turn loop, gate and tools can be run with them again.

use std::collections::BTreeMap;

use loon_api::event::{EffectKind, EffectStatus};
use loon_api::{AgentEvent, EffectKey, Envelope, Item, ItemBody, Message, StopReason, UserPart};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::conversation::Conversation;

/// Where an answer belongs in a script.
struct Scene {
    /// The last words of the user.
    user: String,
    /// Answers since then.
    answers: usize,
}

/// One answer.
struct Step {
    user: String,
    body: Value,
}

/// What the gate notes with the end of a request.
#[derive(Deserialize)]
struct Note {
    stop: StopReason,
    items: usize,
}

/// Makes a script of records.
#[derive(Default)]
pub struct ScriptWriter {
    conversation: Conversation,
    scenes: BTreeMap<EffectKey, Scene>,
    items: Vec<Item>,
    places: BTreeMap<usize, Vec<Step>>,
    remarks: Vec<String>,
}

impl ScriptWriter {
    /// Takes the next record.
    pub fn take(&mut self, envelope: &Envelope) {
        match &envelope.event {
            AgentEvent::EffectStarted(started)
                if started.kind == EffectKind::Model && !started.key.is_aside() =>
            {
                let scene = scene_of(&self.conversation.request_messages());
                self.scenes.insert(started.key.clone(), scene);
                self.items.clear();
            }
            AgentEvent::ItemCompleted(completed) => self.items.push(completed.item.clone()),
            AgentEvent::EffectFinished(finished) => {
                let note = finished.output.clone().map(serde_json::from_value::<Note>);
                let scene = self.scenes.remove(&finished.key);
                match (note, scene) {
                    (Some(Ok(note)), Some(scene)) => self.add(scene, &note),
                    (None, Some(_)) if finished.status != EffectStatus::Completed => {
                        self.remark(format!("the request {} failed and is left out", finished.key));
                    }
                    _ => {}
                }
            }
            AgentEvent::SubagentStarted(started) => self.remark(format!(
                "agent {} ({}) has a journal of its own and is not part of this script",
                started.id, started.agent
            )),
            AgentEvent::ContextCompacted(_) => {
                self.remark(
                    "the context was compacted: summaries are no part of this script".to_owned(),
                );
            }
            AgentEvent::SessionRewound(_) => {
                self.remark(
                    "the session was rewound: answers from before are steps too".to_owned(),
                );
            }
            _ => {}
        }
        self.conversation.apply(envelope.turn, &envelope.event);
    }

    /// The script.
    pub fn finish(self) -> String {
        let mut text = String::from("# Answers of a recorded session, as a script.\n");
        for remark in &self.remarks {
            text.extend(["# Note: ", remark, ".\n"]);
        }
        for (_, mut steps) in self.places {
            // Words that hold other words are looked for first.
            steps.sort_by_key(|step| std::cmp::Reverse(step.user.len()));
            let last = steps.len().saturating_sub(1);
            for (index, step) in steps.into_iter().enumerate() {
                let mut body = step.body;
                // The last step of a place answers whatever comes.
                if index < last {
                    body["when"] = json!({ "user": step.user });
                }
                text.push_str(&body.to_string());
                text.push('\n');
            }
        }
        text
    }

    fn add(&mut self, scene: Scene, note: &Note) {
        let from = self.items.len().saturating_sub(note.items);
        let body = body_of(&self.items[from..], note.stop);
        let steps = self.places.entry(scene.answers).or_default();
        if steps.iter().any(|step| step.user == scene.user) {
            self.remark(format!(
                "two prompts have the same words ({:?}), and the first one's answers are used",
                scene.user.chars().take(40).collect::<String>()
            ));
            return;
        }
        steps.push(Step { user: scene.user, body });
    }

    fn remark(&mut self, remark: String) {
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }
}

/// As the scripted provider sees a conversation; of the user's words, those that were written last.
fn scene_of(messages: &[Message]) -> Scene {
    let mut scene = Scene { user: String::new(), answers: 0 };
    for message in messages {
        match message {
            Message::User(parts) => {
                let mut texts = parts.iter().filter_map(|part| match part {
                    UserPart::Text(text) => Some(text.as_str()),
                    UserPart::Image { .. } => None,
                });
                scene =
                    Scene { user: texts.next_back().unwrap_or_default().to_owned(), answers: 0 };
            }
            Message::Assistant(_) => scene.answers += 1,
        }
    }
    scene
}

fn body_of(items: &[Item], stop: StopReason) -> Value {
    let (mut texts, mut thinkings, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for item in items {
        match &item.body {
            ItemBody::AssistantMessage { text, .. } => texts.push(text.as_str()),
            ItemBody::Thinking(thinking) => thinkings.push(thinking.text.as_str()),
            ItemBody::ToolCall(call) => {
                calls.push(json!({ "name": call.tool, "arguments": call.arguments }));
            }
            ItemBody::UserMessage { .. } | ItemBody::Notice { .. } | ItemBody::Compaction(_) => {}
        }
    }
    let mut body = json!({});
    if !thinkings.is_empty() {
        body["thinking"] = thinkings.join("\n\n").into();
    }
    if !texts.is_empty() {
        body["text"] = texts.join("\n\n").into();
    }
    let usual = if calls.is_empty() { StopReason::End } else { StopReason::ToolCalls };
    if !calls.is_empty() {
        body["calls"] = calls.into();
    }
    if stop != usual {
        body["stop"] = serde_json::to_value(stop).unwrap_or_default();
    }
    body
}
