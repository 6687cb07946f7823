//! What tokens cost: what the settings say of a model, else what the embedded price list says of the
//! host that serves it. A model without a price is unknown, never free.

mod list;

use std::collections::HashMap;
use std::fmt;

use loon_api::{Money, Usage};
use loon_kernel::Pricing;
use rust_decimal::Decimal;
use serde::Deserialize;
use url::Url;

use self::list::Host;

/// US dollars for a million tokens of one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenPrice {
    /// Input tokens.
    pub input: Money,
    /// Input tokens read from the provider's cache; absent if they cost as much as others.
    pub cached: Option<Money>,
    /// Input tokens written to the provider's cache; absent if nobody told.
    pub cache_write: Option<Money>,
    /// Output tokens.
    pub output: Money,
    /// Output tokens spent on reasoning; absent if they cost as much as others.
    pub reasoning: Option<Money>,
}

impl TokenPrice {
    /// The price of `usage`; nothing if a count is missing that it takes.
    fn of(&self, usage: &Usage) -> Option<Money> {
        let (input, output) = (usage.input_tokens?, usage.output_tokens?);
        let cached = usage.cached_tokens.unwrap_or(0).min(input);
        let written = usage.cache_write_tokens.unwrap_or(0).min(input - cached);
        let write_price = if written > 0 { self.cache_write? } else { Money::ZERO };
        let reasoned = match self.reasoning {
            Some(_) => usage.reasoning_tokens?.min(output),
            None => 0,
        };
        let parts = [
            (input - cached - written, self.input),
            (cached, self.cached.unwrap_or(self.input)),
            (written, write_price),
            (output - reasoned, self.output),
            (reasoned, self.reasoning.unwrap_or(self.output)),
        ];
        let mut sum = Decimal::ZERO;
        for (tokens, price) in parts {
            let part = Decimal::from(tokens).checked_mul(price.amount())?;
            sum = sum.checked_add(part.checked_div(Decimal::from(1_000_000))?)?;
        }
        Some(Money::usd(sum.normalize()))
    }
}

/// As in `$2.50 in, $15 out`.
impl fmt::Display for TokenPrice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${} in", self.input)?;
        if let Some(cached) = self.cached {
            write!(f, ", ${cached} cached")?;
        }
        if let Some(written) = self.cache_write {
            write!(f, ", ${written} cache writes")?;
        }
        write!(f, ", ${} out", self.output)?;
        if let Some(reasoning) = self.reasoning {
            write!(f, ", ${reasoning} reasoning")?;
        }
        Ok(())
    }
}

/// A price and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownPrice {
    /// The price of a request of ordinary length.
    pub price: TokenPrice,
    /// Who says so.
    pub source: PriceSource,
}

/// Who says what a model costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriceSource {
    /// The settings.
    Settings,
    /// The embedded price list.
    List {
        /// The host that serves the model.
        host: &'static str,
        /// The day the host's prices were read.
        read: &'static str,
    },
}

impl fmt::Display for PriceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings => f.write_str("settings"),
            Self::List { host, read } => write!(f, "{host}, read {read}"),
        }
    }
}

/// Prices by `provider/model`.
#[derive(Clone, Debug, Default)]
pub struct PriceTable {
    settings: HashMap<String, TokenPrice>,
    /// The hosts of providers that the price list knows, by the provider's name.
    hosts: HashMap<String, &'static Host>,
}

impl PriceTable {
    /// Sets the price of one model, whatever the price list says.
    pub fn insert(&mut self, model: String, price: TokenPrice) {
        self.settings.insert(model, price);
    }

    /// Notes where a provider is reached. The price list goes by the host alone: the name is the
    /// user's, and a server of one's own has no price there.
    pub fn serve(&mut self, provider: &str, base_url: &str) {
        let url = Url::parse(base_url).ok();
        let host = url.as_ref().and_then(Url::host_str).and_then(list::host);
        if let Some(host) = host {
            self.hosts.insert(provider.to_owned(), host);
        }
    }

    /// The price of a model, and who says so.
    pub fn find(&self, model: &str) -> Option<KnownPrice> {
        if let Some(&price) = self.settings.get(model) {
            return Some(KnownPrice { price, source: PriceSource::Settings });
        }
        let (provider, name) = model.split_once('/')?;
        let host = self.hosts.get(provider)?;
        let price = host.models.get(name)?.price;
        let source = PriceSource::List { host: &host.name, read: &host.read };
        Some(KnownPrice { price, source })
    }
}

impl Pricing for PriceTable {
    fn price(&self, model: &str, usage: &Usage) -> Option<Money> {
        if let Some(price) = self.settings.get(model) {
            return price.of(usage);
        }
        let (provider, name) = model.split_once('/')?;
        self.hosts.get(provider)?.models.get(name)?.at(usage.input_tokens?)?.of(usage)
    }
}

#[cfg(test)]
mod tests;
