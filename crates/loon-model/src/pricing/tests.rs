//! Prices from the settings and from the list.

use super::*;

fn usd(text: &str) -> Money {
    text.parse().unwrap()
}

fn flat(input: &str, output: &str) -> TokenPrice {
    let (input, output) = (usd(input), usd(output));
    TokenPrice { input, cached: None, cache_write: None, output, reasoning: None }
}

fn usage(input: u64, output: u64) -> Usage {
    Usage { input_tokens: Some(input), output_tokens: Some(output), ..Usage::default() }
}

#[test]
fn k004_cached_written_and_reasoning_tokens_have_their_own_price_and_unknown_models_none() {
    let mut table = PriceTable::default();
    let price = TokenPrice { cached: Some(usd("0.3")), ..flat("3", "15") };
    table.insert("lab/m".into(), price);
    let used = Usage { cached_tokens: Some(400), ..usage(1_000, 100) };
    assert_eq!(table.price("lab/m", &used), Some(usd("0.00342")));
    let writes = Usage { cache_write_tokens: Some(100), ..used };
    assert_eq!(table.price("lab/m", &writes), None);
    let price = TokenPrice { cache_write: Some(usd("3.75")), ..price };
    table.insert("lab/m".into(), price);
    assert_eq!(table.price("lab/m", &writes), Some(usd("0.003495")));
    table.insert("lab/m".into(), TokenPrice { reasoning: Some(usd("30")), ..price });
    let thinks = Usage { reasoning_tokens: Some(50), ..writes };
    assert_eq!(table.price("lab/m", &thinks), Some(usd("0.004245")));
    assert_eq!(table.price("lab/m", &writes), None, "how much of it was reasoning is not known");
    assert_eq!(table.price("lab/other", &used), None);
    assert_eq!(table.price("lab/m", &Usage::default()), None);
}

#[test]
fn k005_tokens_that_nobody_reported_have_no_price_and_count_as_none() {
    let mut table = PriceTable::default();
    table.insert("lab/m".into(), flat("3", "15"));
    let only_output = Usage { output_tokens: Some(5), ..Usage::default() };
    assert_eq!((table.price("lab/m", &only_output), only_output.total()), (None, 5));
    assert_eq!(Usage::default().total(), 0);
}

#[test]
fn the_list_goes_by_the_host_and_not_by_the_name_that_a_user_gave() {
    let mut table = PriceTable::default();
    table.serve("work", "https://api.openai.com/v1");
    table.serve("openai", "http://127.0.0.1:8080/v1");
    table.serve("far", "https://api.openai.com.example.org/v1");
    let million = usage(1_000_000, 0);
    assert_eq!(table.price("work/gpt-5-mini", &million), Some(usd("0.25")));
    for unknown in ["openai/gpt-5-mini", "far/gpt-5-mini", "work/gpt-5-mini-2099-01-01", "work"] {
        assert_eq!(table.price(unknown, &million), None, "{unknown}");
    }
    let source = table.find("work/gpt-5-mini").unwrap().source;
    assert!(source.to_string().starts_with("api.openai.com, read 20"), "{source}");
    table.insert("work/gpt-5-mini".into(), flat("1", "2"));
    let known = table.find("work/gpt-5-mini").unwrap();
    assert_eq!(
        (known.source, table.price("work/gpt-5-mini", &million)),
        (PriceSource::Settings, Some(usd("1")))
    );
}

#[test]
fn a_long_request_has_the_price_of_long_ones_or_none() {
    let mut table = PriceTable::default();
    table.serve("a", "https://api.anthropic.com/v1");
    table.serve("o", "https://openrouter.ai/api/v1");
    let price = |model: &str, input| table.price(model, &usage(input, 0));
    assert_eq!(price("a/claude-haiku-5-5", 100_000), Some(usd("0.01")));
    assert_eq!(price("a/claude-haiku-5-5", 200_000), Some(usd("0.1")));
    assert_eq!(price("o/openai/gpt-5.4", 272_000), Some(usd("0.68")));
    assert_eq!(price("o/openai/gpt-5.4", 272_001), None);
}
