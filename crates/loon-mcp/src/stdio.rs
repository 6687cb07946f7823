//! A server that is a program: one message a line on its standard input and output.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loon_exec::{LineChild, LineInput, Spawner};
use rmcp::model::ServerJsonRpcMessage;
use rmcp::service::{RoleClient, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};

use crate::tail::Tail;
use crate::words;

/// Most bytes of one message.
pub(crate) const LARGEST: usize = 16 * 1024 * 1024;

/// Variables of our environment that such a program sees.
const SEEN: [&str; 16] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// How long a program whose output has ended may take to end as well.
const LAST_MOMENT: Duration = Duration::from_millis(500);

/// Why a connection ended, once it has. Clones of the handle around it are the same.
#[derive(Debug, Default)]
pub(crate) struct EndNote(Mutex<Option<String>>);

impl EndNote {
    fn put(&self, why: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    }

    pub(crate) fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The way to and from the program.
pub(crate) struct Stdio {
    child: LineChild,
    input: LineInput,
    end: Arc<EndNote>,
}

impl Stdio {
    /// Starts the program. What it says on standard error goes to `stderr`.
    pub(crate) fn start(
        spawner: &Spawner,
        command: &[String],
        env: &[(String, String)],
        cwd: &std::path::Path,
        stderr: Arc<Tail>,
        end: Arc<EndNote>,
    ) -> Result<Self, String> {
        let [program, arguments @ ..] = command else {
            return Err("`command` is empty".to_owned());
        };
        let spawn = spawner.program(program, cwd).args(arguments).unattended().only_env(&SEEN);
        let spawn = env.iter().fold(spawn, |spawn, (name, value)| spawn.env(name, value));
        let child = spawn.on_output(move |bytes| stderr.push(bytes)).start_lines();
        let child = child.map_err(|error| error.to_string())?;
        Ok(Self { input: child.input(), child, end })
    }

    async fn note_end(&self) {
        let ended = match tokio::time::timeout(LAST_MOMENT, self.child.ended()).await {
            Ok(ended) => ended,
            Err(_) => self.child.stop().await,
        };
        let how = match ended.map(|ended| ended.exit) {
            Some(exit) => match (exit.code, exit.signal) {
                (Some(code), _) => format!("the program ended with exit status {code}"),
                (_, Some(signal)) => format!("the program was ended by signal {signal}"),
                _ => "the program ended".to_owned(),
            },
            None => "the program ended".to_owned(),
        };
        self.end.put(how);
    }
}

impl Transport<RoleClient> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let input = self.input.clone();
        async move { input.send(&serde_json::to_vec(&item)?).await }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            match self.child.next(LARGEST).await {
                Ok(Some(line)) => {
                    if let Some(message) = read(&line) {
                        return Some(message);
                    }
                    let said = words::line(&String::from_utf8_lossy(&line), 200);
                    tracing::debug!(said, "a line of an MCP server that is no message");
                }
                Ok(None) => {
                    self.note_end().await;
                    return None;
                }
                Err(error) => {
                    self.end.put(error.to_string());
                    self.child.stop().await;
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.child.end_input().await;
        self.child.stop().await;
        Ok(())
    }
}

/// The message of a line. Programs print other things too; those are none.
fn read(line: &[u8]) -> Option<ServerJsonRpcMessage> {
    let text = String::from_utf8_lossy(line);
    let text = text.trim();
    if !text.starts_with('{') {
        return None;
    }
    if let Ok(message) = serde_json::from_str(text) {
        return Some(message);
    }
    // An answer that cannot be read is an error for whoever waits for it, not silence.
    let value: Value = serde_json::from_str(text).ok()?;
    let id = value.get("id").filter(|id| !id.is_null())?;
    value.get("result").or_else(|| value.get("error"))?;
    let message = format!("an answer that cannot be read: {}", words::line(text, 300));
    let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": message}});
    serde_json::from_value(error).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_are_read() {
        for noise in ["Server v1 starting", "{\"level\":\"info\"}", "", "[1]", "{", "\u{fffd}"] {
            assert!(read(noise.as_bytes()).is_none(), "{noise}");
        }
        let answer = read(br#" {"jsonrpc":"2.0","id":1,"result":{"odd":true}} "#);
        assert!(matches!(answer, Some(ServerJsonRpcMessage::Response(_))));
        let broken = read(br#"{"jsonrpc":"2.0","id":7,"error":"just words"}"#);
        let Some(ServerJsonRpcMessage::Error(error)) = broken else { panic!("{broken:?}") };
        assert!(error.error.message.contains("just words"));
    }
}
