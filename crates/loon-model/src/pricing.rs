//! What tokens cost. A model without a price is unknown, never free.

use std::collections::HashMap;

use loon_api::{Money, Usage};
use loon_kernel::Pricing;
use rust_decimal::Decimal;

/// US dollars for a million tokens of one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenPrice {
    /// Input tokens.
    pub input: Money,
    /// Input tokens read from the provider's cache.
    pub cached: Money,
    /// Input tokens written to the provider's cache; absent if nobody told.
    pub cache_write: Option<Money>,
    /// Output tokens.
    pub output: Money,
}

/// Prices by `provider/model`.
#[derive(Clone, Debug, Default)]
pub struct PriceTable {
    prices: HashMap<String, TokenPrice>,
}

impl PriceTable {
    /// Sets the price of one model.
    pub fn insert(&mut self, model: String, price: TokenPrice) {
        self.prices.insert(model, price);
    }
}

impl Pricing for PriceTable {
    fn price(&self, model: &str, usage: &Usage) -> Option<Money> {
        let price = self.prices.get(model)?;
        let (input, output) = (usage.input_tokens?, usage.output_tokens?);
        let cached = usage.cached_tokens.unwrap_or(0).min(input);
        let written = usage.cache_write_tokens.unwrap_or(0).min(input - cached);
        let write_price = if written > 0 { price.cache_write? } else { Money::ZERO };
        let of = |tokens: u64, price: Money| {
            Decimal::from(tokens).checked_mul(price.amount())?.checked_div(Decimal::from(1_000_000))
        };
        let sum = of(input - cached - written, price.input)?
            .checked_add(of(cached, price.cached)?)?
            .checked_add(of(written, write_price)?)?
            .checked_add(of(output, price.output)?)?;
        Some(Money::usd(sum.normalize()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(text: &str) -> Money {
        Money::usd(text.parse().unwrap())
    }

    #[test]
    fn cached_tokens_have_their_own_price_and_unknown_models_none() {
        let mut table = PriceTable::default();
        let price = TokenPrice {
            input: usd("3"),
            cached: usd("0.3"),
            cache_write: None,
            output: usd("15"),
        };
        table.insert("lab/m".into(), price);
        let usage = Usage {
            input_tokens: Some(1_000),
            cached_tokens: Some(400),
            output_tokens: Some(100),
            ..Usage::default()
        };
        assert_eq!(table.price("lab/m", &usage), Some(usd("0.00342")));
        let writes = Usage { cache_write_tokens: Some(100), ..usage };
        assert_eq!(table.price("lab/m", &writes), None);
        let price = TokenPrice { cache_write: Some(usd("3.75")), ..price };
        table.insert("lab/m".into(), price);
        assert_eq!(table.price("lab/m", &writes), Some(usd("0.003495")));
        assert_eq!(table.price("lab/other", &usage), None);
        assert_eq!(table.price("lab/m", &Usage::default()), None);
    }
}
