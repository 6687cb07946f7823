//! The models that settings name, the one a local server offers, and the demo's script.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loon_api::{ErrorCode, ErrorInfo, ModelError};
use loon_config::{ModelSettings, ProviderKind, Settings};
use loon_core::Models;
use loon_kernel::Route;
use loon_model::combo::{self, Resolved};
use loon_model::pricing::{PriceTable, TokenPrice};
use loon_model::{
    Candidate, Combo, ModelOptions, Provider, ProviderConfig, RemoteModel, ScriptSource, Timeouts,
    detect_local,
};
use secrecy::{ExposeSecret as _, SecretString};

/// The scripted model of `loon demo`.
pub(crate) const DEMO_MODEL: &str = "demo/script";

const DEMO_SCRIPT: &str = include_str!("../../demo/script.jsonl");

/// Models by `provider/model`, and combos of them by `combo/name`.
pub(crate) struct SettingsModels {
    providers: Vec<NamedProvider>,
    combos: Vec<Combo>,
}

struct NamedProvider {
    name: String,
    /// Where it is reached, which says what its models cost.
    base_url: Option<String>,
    /// A provider that settings describe wrongly is an error when it is used, not before.
    provider: Result<Provider, ErrorInfo>,
    kind: loon_model::ProviderKind,
    models: Vec<(String, ModelSettings)>,
}

impl SettingsModels {
    /// The providers of the settings, with keys taken from the environment, and the demo's.
    pub(crate) fn new(settings: &Settings, root: &Path) -> Self {
        let mut providers: Vec<NamedProvider> = settings
            .providers
            .iter()
            .map(|(name, provider)| NamedProvider {
                name: name.clone(),
                base_url: provider.base_url.clone(),
                provider: Provider::new(config_of(name, provider, root))
                    .map_err(|error| ErrorInfo::new(ErrorCode::Invalid, error.to_string())),
                kind: kind_of(provider.kind),
                models: provider.models.iter().map(|(n, m)| (n.clone(), m.clone())).collect(),
            })
            .collect();
        if !settings.providers.contains_key("demo") {
            providers.push(demo());
        }
        let combos = settings.combos.iter().map(|(name, combo)| combo_of(name, combo)).collect();
        Self { providers, combos }
    }

    /// The combos, with their members looked up.
    pub(crate) fn combos(&self) -> impl Iterator<Item = (String, Resolved)> {
        self.combos.iter().map(|combo| (combo.full_name(), self.resolve(combo)))
    }

    /// The names of the models that are no combos.
    pub(crate) fn single_names(&self) -> impl Iterator<Item = String> {
        self.providers.iter().flat_map(|provider| {
            provider.models.iter().map(move |(model, _)| format!("{}/{model}", provider.name))
        })
    }

    fn resolve(&self, combo: &Combo) -> Resolved {
        combo.resolve(|name| self.candidate(name))
    }

    /// The model called `provider/model`, with what is known of it.
    fn candidate(&self, name: &str) -> Result<Candidate, ErrorInfo> {
        let (provider, model) = name
            .split_once('/')
            .filter(|(provider, model)| !provider.is_empty() && !model.is_empty())
            .ok_or_else(|| wrong(format!("{name} is no model; write provider/model.")))?;
        let found =
            self.providers.iter().find(|named| named.name == provider).ok_or_else(|| {
                wrong(format!("The settings have no provider called {provider}."))
            })?;
        let known = found.models.iter().find(|(name, _)| name == model).map(|(_, known)| known);
        let options = known.map_or_else(ModelOptions::default, |settings| ModelOptions {
            context_tokens: settings.context_tokens,
            max_output_tokens: settings.max_output_tokens,
            effort: settings.effort,
        });
        let said = known.and_then(|settings| settings.features.as_deref());
        Ok(Candidate {
            model: found.provider.as_ref().map_err(Clone::clone)?.model(model, options),
            features: combo::features(found.kind, said, options.effort),
        })
    }

    /// What models cost: what the settings say, and the price list for the hosts it knows.
    pub(crate) fn prices(&self) -> PriceTable {
        let mut table = PriceTable::default();
        for provider in &self.providers {
            if let Some(base_url) = &provider.base_url {
                table.serve(&provider.name, base_url);
            }
            for (model, settings) in &provider.models {
                if let Some(price) = settings.price {
                    let price = TokenPrice {
                        input: price.input,
                        cached: price.cached,
                        cache_write: price.cache_write,
                        output: price.output,
                        reasoning: price.reasoning,
                    };
                    table.insert(format!("{}/{model}", provider.name), price);
                }
            }
        }
        table
    }

    /// What the servers of all providers offer.
    pub(crate) async fn ask_servers(&self) -> Vec<(String, Result<Vec<RemoteModel>, ModelError>)> {
        let mut offered = Vec::new();
        for provider in &self.providers {
            if let Ok(server) = &provider.provider {
                offered.push((provider.name.clone(), server.list().await));
            }
        }
        offered
    }
}

fn wrong(message: String) -> ErrorInfo {
    ErrorInfo::new(ErrorCode::Invalid, message).hint("`loon models list` names the models.")
}

impl Models for SettingsModels {
    fn open(&self, name: &str) -> Result<Arc<Route>, ErrorInfo> {
        let Some(combo) = name.strip_prefix(combo::PREFIX) else {
            return Ok(Route::to(self.candidate(name)?.model));
        };
        let found = self.combos.iter().find(|known| known.name == combo);
        let found =
            found.ok_or_else(|| wrong(format!("The settings have no combo called {combo}.")))?;
        self.resolve(found).route()
    }

    fn names(&self) -> Vec<String> {
        self.single_names().chain(self.combos.iter().map(Combo::full_name)).collect()
    }
}

/// A model that a server on this machine offers, beside those of the settings.
pub(crate) struct LocalModel {
    name: String,
    local: SettingsModels,
    others: Arc<dyn Models>,
}

impl LocalModel {
    /// Looks for a server. Gives nothing if none offers a model.
    pub(crate) async fn find(others: &Arc<dyn Models>) -> Option<Self> {
        let server = detect_local().await.into_iter().find(|server| !server.models.is_empty())?;
        let model = &server.models[0];
        let mut config = ProviderConfig::new(server.name, loon_model::ProviderKind::OpenaiChat);
        config.base_url = Some(server.base_url.clone());
        let known = ModelSettings {
            context_tokens: model.context_tokens,
            max_output_tokens: model.max_output_tokens,
            ..ModelSettings::default()
        };
        let provider = NamedProvider {
            name: server.name.to_owned(),
            base_url: Some(server.base_url.clone()),
            provider: Provider::new(config)
                .map_err(|error| ErrorInfo::new(ErrorCode::Invalid, error.to_string())),
            kind: loon_model::ProviderKind::OpenaiChat,
            models: vec![(model.id.clone(), known)],
        };
        Some(Self {
            name: format!("{}/{}", server.name, model.id),
            local: SettingsModels { providers: vec![provider], combos: Vec::new() },
            others: Arc::clone(others),
        })
    }

    /// Its name, as `provider/model`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Models for LocalModel {
    /// What the settings say goes first, should they use the same name.
    fn open(&self, name: &str) -> Result<Arc<Route>, ErrorInfo> {
        self.others.open(name).or_else(|error| self.local.open(name).map_err(|_| error))
    }

    fn names(&self) -> Vec<String> {
        let mut names = self.others.names();
        names.extend(self.local.names());
        names
    }
}

fn demo() -> NamedProvider {
    let mut config = ProviderConfig::new("demo", loon_model::ProviderKind::Script);
    config.script = Some(ScriptSource::Text(DEMO_SCRIPT.to_owned()));
    NamedProvider {
        name: "demo".to_owned(),
        base_url: None,
        provider: Provider::new(config)
            .map_err(|error| ErrorInfo::new(ErrorCode::Internal, error.to_string())),
        kind: loon_model::ProviderKind::Script,
        // Not offered in lists: it can do nothing but the demo.
        models: Vec::new(),
    }
}

/// The key that a variable of the environment holds.
pub(super) fn exported_key(variable: &str) -> Option<SecretString> {
    std::env::var(variable).ok().filter(|key| !key.is_empty()).map(SecretString::from)
}

fn config_of(name: &str, provider: &loon_config::Provider, root: &Path) -> ProviderConfig {
    let from_environment = provider.api_key_env.as_deref().and_then(exported_key);
    ProviderConfig {
        base_url: provider.base_url.clone(),
        api_key: from_environment.or_else(|| provider.api_key.clone()),
        headers: provider.headers.iter().map(|(n, v)| (n.clone(), v.clone())).collect(),
        timeouts: Timeouts {
            connect: Duration::from_secs(provider.connect_timeout_secs),
            idle: Duration::from_secs(provider.idle_timeout_secs),
        },
        script: provider.script.as_ref().map(|file| ScriptSource::Path(root.join(file))),
        ..ProviderConfig::new(name, kind_of(provider.kind))
    }
}

/// True if requests still go to the same server in the same way, whatever is said of its models.
pub(super) fn is_same_server(former: &loon_config::Provider, now: &loon_config::Provider) -> bool {
    let secret = |value: &SecretString| value.expose_secret().to_owned();
    let key = |provider: &loon_config::Provider| provider.api_key.as_ref().map(secret);
    let headers = |provider: &loon_config::Provider| -> Vec<(String, String)> {
        provider.headers.iter().map(|(name, value)| (name.clone(), secret(value))).collect()
    };
    former.kind == now.kind
        && former.base_url == now.base_url
        && former.script == now.script
        && former.api_key_env == now.api_key_env
        && key(former) == key(now)
        && headers(former) == headers(now)
        && former.connect_timeout_secs == now.connect_timeout_secs
        && former.idle_timeout_secs == now.idle_timeout_secs
}

fn kind_of(kind: ProviderKind) -> loon_model::ProviderKind {
    match kind {
        ProviderKind::OpenAiChat => loon_model::ProviderKind::OpenaiChat,
        ProviderKind::OpenAiResponses => loon_model::ProviderKind::OpenaiResponses,
        ProviderKind::Anthropic => loon_model::ProviderKind::Anthropic,
        ProviderKind::Script => loon_model::ProviderKind::Script,
    }
}

fn combo_of(name: &str, combo: &loon_config::Combo) -> Combo {
    Combo {
        name: name.to_owned(),
        members: combo.members.clone(),
        retries: combo.retries as usize,
        needs: combo.needs.clone(),
        min_context: combo.min_context,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn provider(change: &serde_json::Value) -> loon_config::Provider {
        let mut all = json!({
            "kind": "openai-chat", "base_url": "https://lab.test/v1", "api_key": "k",
            "headers": {"x-team": "t"}, "models": {"m": {"context_tokens": 1000}},
        });
        for (name, value) in change.as_object().unwrap() {
            all[name] = value.clone();
        }
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn a_server_is_the_same_as_long_as_requests_go_the_same_way() {
        let same = |change| is_same_server(&provider(&json!({})), &provider(&change));
        assert!(same(json!({})));
        assert!(same(json!({"models": {"m": {"context_tokens": 2000}, "n": {}}})));
        for change in [
            json!({"kind": "anthropic"}),
            json!({"base_url": "https://lab.test/v2"}),
            json!({"api_key": "other"}),
            json!({"api_key_env": "LAB_KEY"}),
            json!({"headers": {"x-team": "u"}}),
            json!({"headers": {}}),
            json!({"connect_timeout_secs": 3}),
            json!({"idle_timeout_secs": 3}),
            json!({"script": "a.jsonl"}),
        ] {
            assert!(!same(change.clone()), "{change}");
        }
    }
}
