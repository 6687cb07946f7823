//! Which models a server has, and which servers run on this machine.

use std::time::Duration;

use loon_api::{ModelError, ModelErrorKind};
use reqwest::header::HeaderMap;
use serde_json::Value;
use url::Url;

use crate::error;
use crate::http::{Server, Timeouts};
use crate::member::count;
use crate::wire::Format;

/// Most bytes of a list.
const MAX_LIST_BYTES: usize = 16 << 20;
/// How long a server on this machine has to show itself.
const LOCAL_LIMIT: Duration = Duration::from_millis(150);
/// Where well-known servers listen unless told otherwise.
const LOCAL_SERVERS: [(&str, u16); 4] =
    [("ollama", 11434), ("llama-cpp", 8080), ("lm-studio", 1234), ("vllm", 8000)];

/// A model as its server describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteModel {
    /// What requests call it.
    pub id: String,
    /// Most tokens of one request and its answer together, if the server says.
    pub context_tokens: Option<u64>,
    /// Most tokens of one answer, if the server says.
    pub max_output_tokens: Option<u64>,
}

/// A model server on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalServer {
    /// What usually listens on its port, as a provider could be named.
    pub name: &'static str,
    /// Its base URL for [`crate::ProviderKind::OpenaiChat`].
    pub base_url: String,
    /// Its models.
    pub models: Vec<RemoteModel>,
}

/// The models of a server.
pub(crate) async fn list(server: &Server, format: Format) -> Result<Vec<RemoteModel>, ModelError> {
    let parameters: &[_] = if format == Format::Anthropic { &[("limit", "1000")] } else { &[] };
    let response = server.get("models", parameters).await?;
    let body = server.whole(response, MAX_LIST_BYTES).await?;
    read_list(&body)
}

/// Reads a list under `data`, as most servers send it, under `models`, or bare.
#[expect(clippy::result_large_err, reason = "the error type is the vocabulary's")]
fn read_list(body: &[u8]) -> Result<Vec<RemoteModel>, ModelError> {
    let list: Value = serde_json::from_slice(body).map_err(|error| {
        let message = format!("the list of models is not JSON: {error}");
        ModelError::new(ModelErrorKind::Protocol, message)
    })?;
    if list.get("error").is_some_and(|error| !error.is_null()) {
        return Err(error::from_body(&list.to_string()));
    }
    // Some servers send both; either may be empty.
    let lists = [Some(&list), list.get("data"), list.get("models")];
    let mut arrays = lists.into_iter().flatten().filter_map(Value::as_array).peekable();
    if arrays.peek().is_none() {
        let message = "the answer holds no list of models";
        return Err(ModelError::new(ModelErrorKind::Protocol, message));
    }
    let mut models: Vec<RemoteModel> = Vec::new();
    for model in arrays.flatten().filter_map(remote_model) {
        if models.iter().all(|known| known.id != model.id) {
            models.push(model);
        }
    }
    Ok(models)
}

fn remote_model(entry: &Value) -> Option<RemoteModel> {
    let names = ["id", "model", "name"];
    let id = names.iter().find_map(|name| entry.get(name)?.as_str().filter(|id| !id.is_empty()));
    Some(RemoteModel {
        id: id.or(entry.as_str())?.to_owned(),
        context_tokens: count(
            entry,
            &[
                "/context_length",
                "/max_model_len",
                "/context_window",
                "/loaded_context_length",
                "/max_context_length",
                "/max_input_tokens",
                "/meta/n_ctx",
                "/top_provider/context_length",
            ],
        ),
        max_output_tokens: count(
            entry,
            &[
                "/max_output_tokens",
                "/max_completion_tokens",
                "/max_tokens",
                "/top_provider/max_completion_tokens",
            ],
        ),
    })
}

/// The model servers that run on this machine on their usual ports, with their models.
pub async fn detect_local() -> Vec<LocalServer> {
    let [a, b, c, d] = LOCAL_SERVERS.map(|(name, port)| probe(name, port));
    let (a, b, c, d) = tokio::join!(a, b, c, d);
    [a, b, c, d].into_iter().flatten().collect()
}

/// Looks for a server on a port of this machine. Nothing is sent where nothing listens.
async fn probe(name: &'static str, port: u16) -> Option<LocalServer> {
    let base_url = format!("http://127.0.0.1:{port}/v1");
    let asked = async {
        drop(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()?);
        let timeouts = Timeouts { connect: LOCAL_LIMIT, idle: LOCAL_LIMIT };
        let server = Server::new(Url::parse(&base_url).ok()?, HeaderMap::new(), timeouts);
        list(&server, Format::Chat).await.ok()
    };
    let models = tokio::time::timeout(LOCAL_LIMIT, asked).await.ok()??;
    Some(LocalServer { name, base_url, models })
}

#[cfg(test)]
mod tests;
