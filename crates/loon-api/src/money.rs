//! Tokens and money. Money is decimal; what is not known is absent, never zero.

use std::ops::AddAssign;

use rust_decimal::Decimal;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// An amount of US dollars, exact, written as a JSON string (`"0.0413"`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Money(Decimal);

impl Money {
    /// No money at all.
    pub const ZERO: Self = Self(Decimal::ZERO);

    /// The hundredth part of a dollar.
    pub fn cent() -> Self {
        Self(Decimal::new(1, 2))
    }

    /// Wraps a decimal amount of US dollars.
    pub fn usd(amount: Decimal) -> Self {
        Self(amount)
    }

    /// The amount in US dollars.
    pub fn amount(self) -> Decimal {
        self.0
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

/// Reads a decimal number such as `2.50`.
impl std::str::FromStr for Money {
    type Err = rust_decimal::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl std::fmt::Display for Money {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl JsonSchema for Money {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Money".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^-?[0-9]+(\\.[0-9]+)?$"})
    }
}

/// What effects cost: a known sum, and how many of them nobody could price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Sum of the priced effects, in US dollars.
    pub usd: Money,
    /// Effects that used tokens but have no known price. While this is not zero, `usd` is a lower
    /// bound.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced: u32,
}

impl Cost {
    /// The known sum with cents, or with the first two digits that say something (`$0.00041`), and `+?`
    /// behind it where more was used than is known. Nothing where no sum is known.
    pub fn words(&self) -> Option<String> {
        let exact = self.usd.amount();
        if exact.is_zero() {
            return None;
        }
        let exact = exact.to_string();
        let (whole, part) = exact.split_once('.').unwrap_or((&exact, ""));
        let leading = part.len() - part.trim_start_matches('0').len();
        let digits = if whole == "0" { (leading + 2).max(2) } else { 2 };
        let part = part.get(..digits).unwrap_or(part);
        let more = if self.unpriced > 0 { "+?" } else { "" };
        Some(format!("${whole}.{part:0<2}{more}"))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde asks for")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.usd += other.usd;
        self.unpriced = self.unpriced.saturating_add(other.unpriced);
    }
}

/// Tokens as a provider reported them. A count that was not reported is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// All input tokens, cached ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Input tokens read from the provider's cache; part of `input_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Input tokens written to the provider's cache; part of `input_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// All output tokens, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Output tokens spent on reasoning; part of `output_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Tokens of requests whose server reported nothing, both ways together, estimated from the bytes
    /// that were sent and received. No part of the other counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_tokens: Option<u64>,
}

impl Usage {
    /// Input plus output plus what was only estimated, counting what is unknown as nothing.
    pub fn total(&self) -> u64 {
        let counts = [self.input_tokens, self.output_tokens, self.estimated_tokens];
        counts.into_iter().flatten().fold(0, u64::saturating_add)
    }

    /// True if nothing was reported.
    pub fn is_unknown(&self) -> bool {
        Self { estimated_tokens: None, ..*self } == Self::default()
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        fn add(into: &mut Option<u64>, more: Option<u64>) {
            if let Some(more) = more {
                *into = Some(into.unwrap_or(0).saturating_add(more));
            }
        }
        add(&mut self.input_tokens, other.input_tokens);
        add(&mut self.cached_tokens, other.cached_tokens);
        add(&mut self.cache_write_tokens, other.cache_write_tokens);
        add(&mut self.output_tokens, other.output_tokens);
        add(&mut self.reasoning_tokens, other.reasoning_tokens);
        add(&mut self.estimated_tokens, other.estimated_tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_a_string_and_keeps_every_digit() {
        let money: Money = serde_json::from_str("\"0.10000000000000000001\"").unwrap();
        assert_eq!(serde_json::to_string(&money).unwrap(), "\"0.10000000000000000001\"");
    }

    #[test]
    fn unknown_plus_known_is_known_and_unknown_plus_unknown_stays_unknown() {
        let mut sum = Usage { input_tokens: None, output_tokens: Some(2), ..Usage::default() };
        sum += Usage { input_tokens: Some(3), ..Usage::default() };
        assert_eq!(sum.input_tokens, Some(3));
        assert_eq!(sum.cached_tokens, None);
        assert_eq!(sum.total(), 5);
        let estimated = Usage { estimated_tokens: Some(7), ..Usage::default() };
        assert!(estimated.is_unknown() && !sum.is_unknown());
        sum += estimated;
        assert_eq!((sum.total(), sum.estimated_tokens), (12, Some(7)));
    }

    #[test]
    fn small_amounts_keep_the_digits_that_say_something() {
        let words = |usd: &str, unpriced| Cost { usd: usd.parse().unwrap(), unpriced }.words();
        assert_eq!(words("0.1134", 0).as_deref(), Some("$0.11"));
        assert_eq!(words("0.000412", 0).as_deref(), Some("$0.00041"));
        assert_eq!(words("12", 1).as_deref(), Some("$12.00+?"));
        assert_eq!(words("3.5", 0).as_deref(), Some("$3.50"));
        assert_eq!(words("0.00", 1), None);
    }

    #[test]
    fn counts_beyond_all_measure_stay_at_the_end() {
        let most = Some(u64::MAX);
        let mut sum = Usage { input_tokens: most, output_tokens: most, ..Usage::default() };
        sum += sum;
        assert_eq!((sum.input_tokens, sum.total()), (most, u64::MAX));
    }
}
