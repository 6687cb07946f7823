//! Values that settings write as text: money, spans of time, secrets.

use std::time::Duration;

use loon_api::Money;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, IntoDeserializer, Unexpected, Visitor};

/// Reads a span of time: numbers with the units `ms`, `s`, `m`, `h`, `d`, largest first
/// (`90s`, `10m`, `1h30m`). Zero is no span.
pub fn parse_period(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, u64); 5] =
        [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
    let wrong = || format!("`{text}` is no span of time; write it like 90s, 10m or 1h30m");
    let mut rest = text.trim();
    let mut total: u64 = 0;
    let mut smallest = u64::MAX;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at(digits);
        let letters = tail.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, tail) = tail.split_at(letters);
        let scale =
            UNITS.iter().find(|(name, _)| *name == unit).map(|(_, ms)| *ms).ok_or_else(wrong)?;
        if scale >= smallest {
            return Err(wrong());
        }
        smallest = scale;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        total = number.checked_mul(scale).and_then(|ms| total.checked_add(ms)).ok_or_else(wrong)?;
        rest = tail;
    }
    if total == 0 { Err(wrong()) } else { Ok(Duration::from_millis(total)) }
}

pub(crate) fn some_period<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(from)?;
    parse_period(&text).map(Some).map_err(D::Error::custom)
}

pub(crate) fn period_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": "^([0-9]+(ms|s|m|h|d))+$", "examples": ["10m"]})
}

struct MoneyVisitor;

impl Visitor<'_> for MoneyVisitor {
    type Value = Money;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an amount of US dollars such as \"2.50\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Money, E> {
        let wrong = || E::invalid_value(Unexpected::Str(text), &self);
        let money = Money::deserialize(IntoDeserializer::<E>::into_deserializer(text))
            .map_err(|_| wrong())?;
        if money < Money::ZERO { Err(wrong()) } else { Ok(money) }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Money, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Money, E> {
        self.visit_str(&number.to_string())
    }

    // The shortest text that reads back as the same float is what the file said.
    fn visit_f64<E: Error>(self, number: f64) -> Result<Money, E> {
        self.visit_str(&number.to_string())
    }
}

pub(crate) fn money<'de, D: Deserializer<'de>>(from: D) -> Result<Money, D::Error> {
    from.deserialize_any(MoneyVisitor)
}

pub(crate) fn some_money<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Money>, D::Error> {
    money(from).map(Some)
}

pub(crate) fn money_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "number"], "minimum": 0, "pattern": "^[0-9]+(\\.[0-9]+)?$", "examples": ["2.50"]})
}

pub(crate) fn secret_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "writeOnly": true})
}

pub(crate) fn secret_map_schema(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": secret_schema(generator)})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_read_in_falling_units_and_nothing_else_does() {
        assert_eq!(parse_period("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_period("1h30m"), Ok(Duration::from_mins(90)));
        assert_eq!(parse_period("250ms"), Ok(Duration::from_millis(250)));
        for wrong in [
            "",
            "0s",
            "10",
            "m",
            "5x",
            "30m1h",
            "1m1m",
            "-1s",
            "1.5h",
            "99999999999999999999d",
            "1 h",
            "١s",
        ] {
            assert!(parse_period(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn money_reads_from_text_and_numbers_exactly_and_is_never_negative() {
        let read = |value: serde_json::Value| money(value).map(|money| money.to_string());
        assert_eq!(read(serde_json::json!("0.10")).unwrap(), "0.10");
        assert_eq!(read(serde_json::json!(0.1)).unwrap(), "0.1");
        assert_eq!(read(serde_json::json!(5)).unwrap(), "5");
        for wrong in [
            serde_json::json!("-1"),
            serde_json::json!(-1),
            serde_json::json!("many"),
            serde_json::json!(true),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
