//! Providers: where models are reached, and the models that are reached there.

use std::path::PathBuf;
use std::sync::Arc;

use loon_api::{Answer, BoxFuture, Effort, ModelError, ModelInfo, ModelRequest};
use loon_kernel::port::{Admitted, EffectContext, Model};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::catalog::{self, RemoteModel};
use crate::exchange;
use crate::http::{Server, Timeouts};
use crate::script::{Script, ScriptError};
use crate::wire::{Format, Target};

/// What a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProviderKind {
    /// Chat Completions: what nearly every local server and gateway speaks too.
    OpenaiChat,
    /// Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// A script in place of a model; see [`crate::script`].
    Script,
}

/// Where the steps of a script come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptSource {
    /// A file.
    Path(PathBuf),
    /// The text itself.
    Text(String),
}

/// A provider as settings describe it.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// Its name in settings, the first half of `provider/model`.
    pub name: String,
    /// What it speaks.
    pub kind: ProviderKind,
    /// With its version segment; only a script does without.
    pub base_url: Option<String>,
    /// Absent is fine for a local server.
    pub api_key: Option<SecretString>,
    /// Sent with every request; they win over the headers that are sent anyway.
    pub headers: Vec<(String, SecretString)>,
    /// How long it may keep us waiting.
    pub timeouts: Timeouts,
    /// For [`ProviderKind::Script`].
    pub script: Option<ScriptSource>,
}

impl ProviderConfig {
    /// A provider with the defaults of its kind.
    pub fn new(name: impl Into<String>, kind: ProviderKind) -> Self {
        Self {
            name: name.into(),
            kind,
            base_url: None,
            api_key: None,
            headers: Vec::new(),
            timeouts: Timeouts::default(),
            script: None,
        }
    }
}

/// What settings know of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelOptions {
    /// Most tokens of one request and its answer together.
    pub context_tokens: Option<u64>,
    /// Most tokens of one answer; sent with requests that do not say.
    pub max_output_tokens: Option<u64>,
    /// Reasoning effort; sent with requests that do not say.
    pub effort: Option<Effort>,
}

/// Why a provider cannot be used as settings describe it.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// No URL, or not one for HTTP.
    #[error("provider `{provider}`: base_url: {reason}")]
    BaseUrl {
        /// Name of the provider.
        provider: String,
        /// What is wrong.
        reason: String,
    },
    /// A header or key that HTTP cannot carry. Its value is not shown.
    #[error("provider `{provider}`: {what} holds characters that a header cannot carry")]
    Header {
        /// Name of the provider.
        provider: String,
        /// Which one.
        what: String,
    },
    /// A script provider without a script, or with one that cannot be read.
    #[error("provider `{provider}`: {source}")]
    Script {
        /// Name of the provider.
        provider: String,
        /// What is wrong.
        source: ScriptError,
    },
}

/// A provider: one HTTP client, made with the first request, for all its models. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Provider {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    name: String,
    reach: Reach,
    /// What errors must not show.
    secrets: Vec<SecretString>,
}

#[derive(Debug)]
enum Reach {
    Http { format: Format, server: Box<Server>, is_openai: bool },
    Script(Arc<Script>),
}

impl Provider {
    /// Checks the settings. Connects nowhere; reads the script if there is one.
    pub fn new(config: ProviderConfig) -> Result<Self, ProviderError> {
        let reach =
            match Format::of(config.kind) {
                Some(format) => {
                    let base = base_url(&config)?;
                    Reach::Http {
                        format,
                        is_openai: base.host_str() == Some("api.openai.com"),
                        server: Box::new(Server::new(base, headers(&config)?, config.timeouts)),
                    }
                }
                None => Reach::Script(Arc::new(Script::load(config.script.as_ref()).map_err(
                    |source| ProviderError::Script { provider: config.name.clone(), source },
                )?)),
            };
        let secrets = secrets(&config);
        Ok(Self { inner: Arc::new(Inner { name: config.name, reach, secrets }) })
    }

    /// The model `name` of this provider. Nothing is asked of the server.
    pub fn model(&self, name: &str, options: ModelOptions) -> Arc<dyn Model> {
        Arc::new(self.provided(name, options))
    }

    pub(crate) fn provided(&self, name: &str, options: ModelOptions) -> ProvidedModel {
        ProvidedModel {
            provider: self.clone(),
            model: name.to_owned(),
            effort: options.effort,
            info: ModelInfo {
                name: format!("{}/{name}", self.inner.name),
                context_tokens: options.context_tokens,
                max_output_tokens: options.max_output_tokens,
            },
        }
    }

    /// The models that the server says it has, in its order. A script says none.
    pub async fn list(&self) -> Result<Vec<RemoteModel>, ModelError> {
        match &self.inner.reach {
            Reach::Http { server, format, .. } => {
                catalog::list(server, *format).await.map_err(|error| self.masked(error))
            }
            Reach::Script(_) => Ok(Vec::new()),
        }
    }

    /// The error without keys and secret headers, in case the server repeated one.
    fn masked(&self, mut error: ModelError) -> ModelError {
        for secret in &self.inner.secrets {
            let secret = secret.expose_secret();
            if error.message.contains(secret) {
                error.message = error.message.replace(secret, "[secret]");
            }
        }
        error
    }
}

/// A model of a provider.
pub(crate) struct ProvidedModel {
    provider: Provider,
    model: String,
    effort: Option<Effort>,
    info: ModelInfo,
}

impl ProvidedModel {
    /// What `run` does once it was admitted.
    pub(crate) async fn ask(
        &self,
        request: &ModelRequest,
        cx: &EffectContext,
    ) -> Result<Answer, ModelError> {
        match &self.provider.inner.reach {
            Reach::Http { format, server, is_openai } => {
                let target = Target {
                    name: self.info.name.clone(),
                    model: self.model.clone(),
                    is_openai: *is_openai,
                    max_output_tokens: self.info.max_output_tokens,
                    effort: self.effort,
                };
                let answer = exchange::ask(server, *format, &target, request, cx).await;
                answer.map_err(|error| self.provider.masked(error))
            }
            Reach::Script(script) => script.answer(&self.info.name, request, cx).await,
        }
    }
}

impl Model for ProvidedModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn run<'a>(
        &'a self,
        _admitted: Admitted,
        request: &'a ModelRequest,
        cx: &'a EffectContext,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(self.ask(request, cx))
    }

    fn warm(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Reach::Http { server, .. } = &self.provider.inner.reach {
                server.warm().await;
            }
        })
    }
}

/// The key and the values of all headers, and what follows a scheme such as `Bearer` in one. Values
/// so short that they are part of ordinary words are no secrets.
fn secrets(config: &ProviderConfig) -> Vec<SecretString> {
    let values = config.api_key.iter().chain(config.headers.iter().map(|(_, value)| value));
    values
        .map(|value| value.expose_secret().trim())
        .flat_map(|value| [Some(value), value.split_once(' ').map(|(_, rest)| rest.trim())])
        .flatten()
        .filter(|value| value.len() >= 4)
        .map(SecretString::from)
        .collect()
}

fn base_url(config: &ProviderConfig) -> Result<Url, ProviderError> {
    let fail = |reason: String| ProviderError::BaseUrl { provider: config.name.clone(), reason };
    let text = config.base_url.as_deref().ok_or_else(|| fail("is missing".to_owned()))?;
    let url = Url::parse(text).map_err(|error| fail(format!("is no URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(fail("must begin with http:// or https:// and a host".to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(fail("must not hold a user or password; use `headers`".to_owned()));
    }
    Ok(url)
}

fn headers(config: &ProviderConfig) -> Result<HeaderMap, ProviderError> {
    let fail =
        |what: &str| ProviderError::Header { provider: config.name.clone(), what: what.to_owned() };
    let secret = |text: &str, what: &str| {
        let mut value = HeaderValue::from_str(text).map_err(|_| fail(what))?;
        value.set_sensitive(true);
        Ok(value)
    };
    let mut headers = HeaderMap::new();
    let key =
        config.api_key.as_ref().map(|key| key.expose_secret().trim()).filter(|key| !key.is_empty());
    if config.kind == ProviderKind::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        if let Some(key) = key {
            headers.insert("x-api-key", secret(key, "the API key")?);
        }
    } else if let Some(key) = key {
        headers.insert(AUTHORIZATION, secret(&format!("Bearer {key}"), "the API key")?);
    }
    for (name, value) in &config.headers {
        let what = format!("the header `{name}`");
        let parsed: HeaderName = name.parse().map_err(|_| fail(&what))?;
        headers.insert(parsed, secret(value.expose_secret(), &what)?);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests;
