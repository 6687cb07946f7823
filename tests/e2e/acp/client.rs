//! A small client of the Agent Client Protocol, as an editor would be one.

use std::path::Path;

use loon_testkit::{Finished, Home, Input, Loon, Running};
use serde_json::{Value, json};

/// What the person at the editor answers to a request for permission.
type Person = Box<dyn FnMut(&Value) -> Value>;

/// One `loon acp` with its client.
pub(super) struct Client {
    loon: Running,
    next: i64,
    person: Person,
    /// Everything that came and was no answer to a request of the client, in order.
    pub(super) seen: Vec<Value>,
}

/// The choice of this option.
pub(super) fn choose(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

impl Client {
    /// Starts it; its first words are still to come.
    pub(super) fn start(home: &Home, arguments: &[&str]) -> Self {
        let loon = Loon::new(home, home.path()).args(["acp"]).args(arguments.iter().copied());
        let person = Box::new(|request: &Value| panic!("nobody expected {request}"));
        Self { loon: loon.input(Input::Open).start(), next: 1, person, seen: Vec::new() }
    }

    /// Starts it and says the first words.
    pub(super) fn ready(home: &Home, arguments: &[&str]) -> Self {
        let mut client = Self::start(home, arguments);
        client.request("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}}));
        client
    }

    /// Who answers from now on.
    pub(super) fn person(&mut self, person: impl FnMut(&Value) -> Value + 'static) {
        self.person = Box::new(person);
    }

    /// Begins a session in this folder.
    pub(super) fn new_session(&mut self, folder: impl AsRef<Path>) -> String {
        let folder = folder.as_ref();
        let opened = self.request("session/new", &json!({"cwd": folder, "mcpServers": []}));
        opened["sessionId"].as_str().expect("an id").to_owned()
    }

    /// Sends a prompt and waits for its stop reason.
    pub(super) fn prompt(&mut self, session: &str, text: &str) -> Value {
        self.request("session/prompt", &prompt(session, text))["stopReason"].clone()
    }

    /// Sends a request and waits for what it gives.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        let answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends a request and waits for the error it ends in.
    pub(super) fn refused(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        let answer = self.answer(id);
        assert!(answer.get("result").is_none(), "{method}: {answer}");
        answer["error"].clone()
    }

    /// Sends a request. Gives its id.
    pub(super) fn send(&mut self, method: &str, params: &Value) -> i64 {
        let id = self.next;
        self.next += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a notification.
    pub(super) fn notify(&mut self, method: &str, params: &Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Writes a line.
    pub(super) fn write(&mut self, line: &impl std::fmt::Display) {
        self.loon.write_line(line);
    }

    /// Waits for the answer to a request of the client.
    pub(super) fn answer(&mut self, id: i64) -> Value {
        self.wait(&format!("the answer to {id}"), |message| {
            message.get("method").is_none() && message["id"] == id
        })
    }

    /// Waits for an update of this kind that the function takes.
    pub(super) fn update(&mut self, kind: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let message = self.wait(kind, |message| {
            let update = &message["params"]["update"];
            update["sessionUpdate"] == kind && wanted(update)
        });
        message["params"]["update"].clone()
    }

    /// Waits for a message, and has the person answer what is asked meanwhile.
    pub(super) fn wait(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.loon.wait_event(what, |_| true);
            assert_eq!(message["jsonrpc"], "2.0", "{message}");
            if message["method"] == "session/request_permission" && !wanted(&message) {
                let answer = (self.person)(&message["params"]);
                self.write(&json!({"jsonrpc": "2.0", "id": message["id"], "result": answer}));
            }
            self.seen.push(message.clone());
            if wanted(&message) {
                return message;
            }
        }
    }

    /// What the person reads of one session, as one text.
    pub(super) fn words(&self, session: &str) -> String {
        self.texts(session, "agent_message_chunk")
    }

    /// The texts of all chunks of one kind.
    pub(super) fn texts(&self, session: &str, kind: &str) -> String {
        let chunks = self.updates(session);
        let chunks = chunks.iter().filter(|update| update["sessionUpdate"] == kind);
        chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    /// All updates of one session.
    pub(super) fn updates(&self, session: &str) -> Vec<Value> {
        let updates = self.seen.iter().filter(|message| {
            message["method"] == "session/update" && message["params"]["sessionId"] == session
        });
        updates.map(|message| message["params"]["update"].clone()).collect()
    }

    /// The calls of one session as they ended up, in the order they came.
    pub(super) fn calls(&self, session: &str) -> Vec<Value> {
        let mut calls: Vec<Value> = Vec::new();
        for update in self.updates(session) {
            let Some(id) = update.get("toolCallId").cloned() else { continue };
            match calls.iter_mut().find(|call| call["toolCallId"] == id) {
                None => calls.push(update),
                Some(call) => {
                    for (name, value) in update.as_object().expect("an object") {
                        call[name] = value.clone();
                    }
                }
            }
        }
        calls
    }

    /// The process, for signals.
    pub(super) fn process(&self) -> &Running {
        &self.loon
    }

    /// Closes its input and waits for its end.
    pub(super) fn leave(mut self) -> Finished {
        self.loon.close_input();
        self.loon.finish()
    }

    /// Waits for its end.
    pub(super) fn finish(self) -> Finished {
        self.loon.finish()
    }
}

/// The parameters of a prompt of words.
pub(super) fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}
