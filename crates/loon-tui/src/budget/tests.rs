//! Keys of the budget sheet, and amounts.

use super::*;

fn usd(text: &str) -> Money {
    text.parse().unwrap()
}

fn press(sheet: &mut BudgetSheet, code: KeyCode) -> Answer {
    sheet.key(KeyEvent::from(code), 1_000, false)
}

fn sheet() -> BudgetSheet {
    BudgetSheet::ask(ReachedBound::MaxUsd { limit: usd("2"), used: usd("2.5") }, 0)
}

#[test]
fn amounts_are_read_as_people_write_them() {
    let none = Bounds::default();
    for (text, bounds) in [
        ("5", Bounds { max_usd: Some(usd("5")), ..none }),
        ("$2.50", Bounds { max_usd: Some(usd("2.50")), ..none }),
        ("200k tokens", Bounds { max_tokens: Some(200_000), ..none }),
        ("1.5M tokens", Bounds { max_tokens: Some(1_500_000), ..none }),
        ("50 requests", Bounds { max_requests: Some(50), ..none }),
        ("90m", Bounds { deadline_ms: Some(5_400_000), ..none }),
    ] {
        assert_eq!(parse(text), Some(bounds), "{text}");
    }
    for text in ["", "-1", "much", "5 euros", "1e3", "5 tokens more", "99999999999999999M tokens"] {
        assert_eq!(parse(text), None, "{text}");
    }
}

#[test]
fn doubling_goes_on_until_the_bound_is_above_what_is_used() {
    let of = |limit: &str, used: &str| {
        doubled(&ReachedBound::MaxUsd { limit: usd(limit), used: usd(used) }).max_usd.unwrap()
    };
    assert_eq!((of("2", "2"), of("2", "9"), of("0", "0")), (usd("4"), usd("16"), usd("0.01")));
    let tokens = |limit, used| doubled(&ReachedBound::MaxTokens { limit, used }).max_tokens;
    assert_eq!(
        (tokens(100, 100), tokens(100, 900), tokens(0, 0)),
        (Some(200), Some(1600), Some(1))
    );
}

#[test]
fn each_choice_has_a_key_and_an_amount_must_be_above_what_is_used() {
    let raise = |text| {
        Answer::Send(Command::RaiseBudget(Bounds { max_usd: Some(usd(text)), ..Bounds::default() }))
    };
    assert_eq!(press(&mut sheet(), KeyCode::Char('d')), raise("4"));
    assert_eq!(press(&mut sheet(), KeyCode::Enter), raise("4"));
    assert_eq!(press(&mut sheet(), KeyCode::Char('n')), Answer::Send(Command::RefuseBudget));
    let mut sheet = sheet();
    press(&mut sheet, KeyCode::Char('a'));
    press(&mut sheet, KeyCode::Char('2'));
    assert_eq!(
        press(&mut sheet, KeyCode::Enter),
        Answer::Refused("that is not above what is used already")
    );
    press(&mut sheet, KeyCode::Char('5'));
    assert_eq!(press(&mut sheet, KeyCode::Enter), raise("25"));
}

#[test]
fn a_sheet_that_has_just_appeared_takes_no_key() {
    let mut sheet = sheet();
    assert_eq!(sheet.key(KeyEvent::from(KeyCode::Enter), 100, false), Answer::TooEarly);
    assert_eq!(sheet.key(KeyEvent::from(KeyCode::Esc), 400, false), Answer::Hide);
    assert!(sheet.is_hidden());
}
