//! Five fields of cron: minute, hour, day of the month, month, day of the week; in UTC.

use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use loon_api::At;

/// How far ahead an occurrence is looked for. The 29th of February is at most eight years away.
const YEARS_AHEAD: i16 = 9;

/// When a line of cron fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    minutes: Set,
    hours: Set,
    days: Set,
    months: Set,
    weekdays: Set,
}

/// Why a line is none of cron.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// There are other than five fields.
    #[error("it has {found} fields; it needs minute, hour, day, month and day of the week")]
    Fields {
        /// How many there are.
        found: usize,
    },
    /// A field says nothing that can be.
    #[error(
        "{field} `{text}`: write `*`, numbers from {from} to {to}, ranges `a-b`, steps `*/n`, with commas"
    )]
    Field {
        /// Which.
        field: &'static str,
        /// What it holds.
        text: String,
        /// The smallest number.
        from: u8,
        /// The largest number.
        to: u8,
    },
}

/// Numbers from 0 to 63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Set {
    bits: u64,
    /// It was written as `*`, or with a step of it.
    any: bool,
}

impl Set {
    fn has(self, number: i8) -> bool {
        u32::try_from(number).is_ok_and(|number| self.bits >> number & 1 == 1)
    }

    fn parse(field: &'static str, text: &str, from: u8, to: u8) -> Result<Self, CronError> {
        let wrong = || CronError::Field { field, text: text.to_owned(), from, to };
        let number = |text: &str| -> Result<u8, CronError> {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let parsed = text.parse().ok().filter(|number| digits && (from..=to).contains(number));
            parsed.ok_or_else(wrong)
        };
        let mut bits = 0_u64;
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => {
                    let step: usize = step.parse().map_err(|_| wrong())?;
                    (range, Some(step).filter(|step| *step > 0).ok_or_else(wrong)?)
                }
                None => (part, 1),
            };
            let (first, last) = match range.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None if range == "*" => (from, to),
                None if part.contains('/') => (number(range)?, to),
                None => (number(range)?, number(range)?),
            };
            if first > last {
                return Err(wrong());
            }
            (first..=last).step_by(step).for_each(|number| bits |= 1 << number);
        }
        Ok(Self { bits, any: text.starts_with('*') })
    }
}

impl FromStr for Cron {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, CronError> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields[..] else {
            return Err(CronError::Fields { found: fields.len() });
        };
        let mut weekdays = Set::parse("day of the week", weekdays, 0, 7)?;
        // Sunday is both 0 and 7.
        weekdays.bits |= weekdays.bits >> 7 & 1;
        Ok(Self {
            minutes: Set::parse("minute", minutes, 0, 59)?,
            hours: Set::parse("hour", hours, 0, 23)?,
            days: Set::parse("day", days, 1, 31)?,
            months: Set::parse("month", months, 1, 12)?,
            weekdays,
        })
    }
}

impl Cron {
    /// The first occurrence after `now`; absent if none comes (the 30th of February).
    pub fn next_after(&self, now: At) -> Option<At> {
        let start = Timestamp::from_millisecond(now.unix_ms()).ok()?;
        let start = TimeZone::UTC.to_datetime(start);
        let last_year = start.year().checked_add(YEARS_AHEAD)?;
        let mut day = start.date();
        while day.year() <= last_year {
            if self.is_on(day)
                && let Some(found) = self.first_on(day, start)
            {
                let at = TimeZone::UTC.to_timestamp(found).ok()?;
                return Some(At::from_unix_ms(at.as_millisecond()));
            }
            day = day.tomorrow().ok()?;
        }
        None
    }

    /// Where both days are given, either is enough.
    fn is_on(&self, day: Date) -> bool {
        let by_date = self.days.has(day.day());
        let by_weekday = self.weekdays.has(day.weekday().to_sunday_zero_offset());
        let on_day = if self.days.any || self.weekdays.any {
            by_date && by_weekday
        } else {
            by_date || by_weekday
        };
        on_day && self.months.has(day.month())
    }

    /// The first minute of the day that is after `start`.
    fn first_on(&self, day: Date, start: DateTime) -> Option<DateTime> {
        let minutes = (0..24)
            .filter(|hour| self.hours.has(*hour))
            .flat_map(|hour| (0..60).map(move |minute| (hour, minute)))
            .filter(|(_, minute)| self.minutes.has(*minute));
        minutes.map(|(hour, minute)| day.at(hour, minute, 0, 0)).find(|found| *found > start)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn next(line: &str, now: &str) -> Option<String> {
        let cron: Cron = line.parse().unwrap();
        cron.next_after(now.parse().unwrap()).map(|at| at.to_string())
    }

    #[test]
    fn k070_lines_fire_when_they_say() {
        // A Monday.
        let now = "2026-11-30T12:00:00Z";
        for (line, expected) in [
            ("0 3 * * *", "2026-12-01T03:00:00.000Z"),
            ("* * * * *", "2026-11-30T12:01:00.000Z"),
            ("*/20 12 * * *", "2026-11-30T12:20:00.000Z"),
            ("0 9 * * 1-5", "2026-12-01T09:00:00.000Z"),
            ("30 8 * * 7", "2026-12-06T08:30:00.000Z"),
            ("0 0 29 2 *", "2028-02-29T00:00:00.000Z"),
            // The 15th, or a Friday.
            ("0 0 15 * 5", "2026-12-04T00:00:00.000Z"),
            ("5,10 0 1 1,6 *", "2027-01-01T00:05:00.000Z"),
            ("50/5 23 * * *", "2026-11-30T23:50:00.000Z"),
        ] {
            assert_eq!(next(line, now).as_deref(), Some(expected), "{line}");
        }
        assert_eq!(next("0 0 30 2 *", now), None);
    }

    #[test]
    fn what_is_no_line_is_named() {
        let error = "0 3 * *".parse::<Cron>().unwrap_err();
        assert_eq!(error, CronError::Fields { found: 4 });
        for line in [
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 8",
            "5-1 * * * *",
            "*/0 * * * *",
            "a * * * *",
            "1, * * * *",
            "+1 * * * *",
        ] {
            let error = line.parse::<Cron>().unwrap_err();
            assert!(matches!(error, CronError::Field { .. }), "{line}: {error}");
        }
    }

    proptest! {
        #[test]
        fn the_next_occurrence_is_the_first_minute_that_fits(
            minute in 0_u8..60, hour in 0_u8..24, weekday in 0_u8..7, start in 0_i64..4_000_000_000,
        ) {
            let cron: Cron = format!("{minute} {hour} * * {weekday}").parse().unwrap();
            let now = At::from_unix_ms(start * 1000);
            let found = cron.next_after(now).unwrap();
            prop_assert!(found > now);
            prop_assert!(found.since(now) <= Duration::from_hours(24 * 7));
            let at = TimeZone::UTC.to_datetime(Timestamp::from_millisecond(found.unix_ms()).unwrap());
            prop_assert_eq!((at.minute(), at.hour()), (minute as i8, hour as i8));
            prop_assert_eq!(at.weekday().to_sunday_zero_offset(), weekday as i8);
        }
    }
}
