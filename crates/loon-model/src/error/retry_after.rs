//! How long a server asks to wait, in every form in which servers say it.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// The longest wait that is passed on. Nobody means more, and sums with it stay finite.
const LONGEST: Duration = Duration::from_hours(24 * 366);

/// The three forms of an HTTP date.
const DATE_FORMS: [&str; 3] =
    ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];

/// The wait that the headers ask for, if one of them says a sensible one: a number of seconds, or
/// a date in the future. Of several, the longest. Dates are counted from the server's own clock
/// where it tells the time, else from `now`.
pub(crate) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let texts = |name| headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    let milliseconds = texts("retry-after-ms".parse().ok()?)
        .filter_map(|text| seconds(text).map(|wait| wait / 1000));
    let longest = milliseconds.max();
    if longest.is_some() {
        return longest;
    }
    let now = texts(DATE).find_map(date).unwrap_or(now);
    texts(RETRY_AFTER)
        .flat_map(|text| {
            let listed = text.split(',').filter_map(seconds);
            listed.chain(date(text).and_then(|date| until(now, date)))
        })
        .max()
}

/// A number of seconds, whole or not.
fn seconds(text: &str) -> Option<Duration> {
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let seconds: f64 = is_number.then(|| text.parse().ok())??;
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST).min(LONGEST))
}

fn date(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    DATE_FORMS.iter().find_map(|form| {
        let date = strtime::parse(form, text).ok()?.to_datetime().ok()?;
        Some(date.to_zoned_datetime(TimeZone::UTC).ok()?.timestamp())
    })
}

fn until(now: Timestamp, date: Timestamp) -> Option<Duration> {
    let wait = Duration::try_from(date.duration_since(now)).ok()?;
    (!wait.is_zero()).then_some(wait.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn wait(pairs: &[(&'static str, &'static str)]) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        retry_after(&headers, "2026-11-30T12:00:00Z".parse().unwrap())
    }

    #[test]
    fn every_form_gives_a_finite_wait_or_none() {
        let seconds = |s: f64| Some(Duration::from_secs_f64(s));
        for (value, expected) in [
            ("3", seconds(3.0)),
            (" 3 ", seconds(3.0)),
            ("1.5", seconds(1.5)),
            ("0", seconds(0.0)),
            ("999999", seconds(999_999.0)),
            ("Mon, 30 Nov 2026 12:00:05 GMT", seconds(5.0)),
            ("Monday, 30-Nov-26 12:00:05 GMT", seconds(5.0)),
            ("Mon Nov 30 12:00:05 2026", seconds(5.0)),
            ("Mon, 30 Nov 2026 11:00:00 GMT", None),
            ("Mon, 30 Nov 2026 12:00:00 GMT", None),
            ("Sat, 31 Feb 2026 12:00:05 GMT", None),
            ("soon", None),
            ("-5", None),
            ("", None),
            ("NaN", None),
            ("inf", None),
            ("1e9", None),
            ("1.2.3", None),
            ("3, 7", seconds(7.0)),
            ("99999999999999999999999999", Some(LONGEST)),
            ("Tue, 01 Jan 2999 00:00:00 GMT", Some(LONGEST)),
        ] {
            assert_eq!(wait(&[("retry-after", value)]), expected, "{value}");
        }
        assert_eq!(wait(&[]), None);
    }

    #[test]
    fn of_several_headers_the_longest_counts_and_milliseconds_win() {
        assert_eq!(
            wait(&[("retry-after", "3"), ("retry-after", "3")]),
            Some(Duration::from_secs(3))
        );
        assert_eq!(
            wait(&[("retry-after", "soon"), ("retry-after", "4")]),
            Some(Duration::from_secs(4))
        );
        assert_eq!(
            wait(&[("retry-after", "3"), ("retry-after-ms", "250")]),
            Some(Duration::from_millis(250))
        );
        assert_eq!(
            wait(&[("retry-after-ms", "never"), ("retry-after", "3")]),
            Some(Duration::from_secs(3))
        );
    }

    #[test]
    fn dates_are_counted_from_the_servers_own_clock() {
        assert_eq!(
            wait(&[
                ("date", "Mon, 30 Nov 2026 09:00:00 GMT"),
                ("retry-after", "Mon, 30 Nov 2026 09:00:07 GMT"),
            ]),
            Some(Duration::from_secs(7))
        );
    }
}
