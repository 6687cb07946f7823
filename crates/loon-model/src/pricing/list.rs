//! The price list that comes with Loom: `prices.toml`, compiled in.

use std::collections::HashMap;
use std::sync::LazyLock;

use loon_api::Money;
use serde::Deserialize;

use super::TokenPrice;

/// A host and what it charges.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Host {
    /// As in a provider's base URL.
    pub(super) name: String,
    /// The day its prices were read.
    pub(super) read: String,
    /// The page that says so, for whoever looks after the list.
    #[expect(dead_code, reason = "for readers of the file")]
    source: String,
    /// By the names it knows them under.
    pub(super) models: HashMap<String, ListedPrice>,
}

/// The price of a model as the list has it.
#[derive(Debug, Deserialize)]
#[serde(from = "Entry")]
pub(super) struct ListedPrice {
    pub(super) price: TokenPrice,
    /// Most input tokens for which it holds.
    up_to: Option<u64>,
    /// The price beyond that, if it is known.
    long: Option<TokenPrice>,
}

impl ListedPrice {
    /// The price of a request with so many input tokens.
    pub(super) fn at(&self, input_tokens: u64) -> Option<&TokenPrice> {
        match self.up_to {
            Some(up_to) if input_tokens > up_to => self.long.as_ref(),
            Some(_) | None => Some(&self.price),
        }
    }
}

/// A line of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    input: Money,
    cached: Option<Money>,
    cache_write: Option<Money>,
    output: Money,
    reasoning: Option<Money>,
    up_to: Option<u64>,
    long: Option<TokenPrice>,
}

impl From<Entry> for ListedPrice {
    fn from(entry: Entry) -> Self {
        let Entry { input, cached, cache_write, output, reasoning, up_to, long } = entry;
        Self { price: TokenPrice { input, cached, cache_write, output, reasoning }, up_to, long }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    host: Vec<Host>,
}

static HOSTS: LazyLock<Vec<Host>> = LazyLock::new(|| {
    // A test reads the same text, so that a list that cannot be read is not shipped; without one,
    // prices are unknown.
    read().map(|list| list.host).unwrap_or_default()
});

fn read() -> Result<List, toml_edit::de::Error> {
    toml_edit::de::from_str(include_str!("../../prices.toml"))
}

/// The host of this name.
pub(super) fn host(name: &str) -> Option<&'static Host> {
    HOSTS.iter().find(|host| host.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_can_be_read_and_says_nothing_absurd() {
        let list = read().unwrap();
        assert!(list.host.len() >= 7);
        for host in &list.host {
            assert_eq!(host.read.len(), "2026-01-31".len(), "{}", host.name);
            for (name, model) in &host.models {
                for price in [Some(&model.price), model.long.as_ref()].into_iter().flatten() {
                    assert!(price.input > Money::ZERO && price.output >= price.input, "{name}");
                    assert!(price.cached.is_none_or(|cached| cached < price.input), "{name}");
                    assert!(price.cache_write.is_none_or(|write| write > price.input), "{name}");
                }
                assert!(model.long.is_none() || model.up_to.is_some(), "{name}");
            }
        }
    }
}
