//! `loon sessions prune`: nothing goes by itself, and nothing before it was shown.

use std::fmt::Write as _;

use loon_api::{Clock as _, SessionSummary};
use loon_core::SessionIndex;
use loon_core::index::Filter;
use loon_kernel::{FileStore, SystemClock};
use serde_json::json;

use super::{delete, failed, json_line, list};
use crate::args::PruneArgs;
use crate::failure::Failure;
use crate::wiring::Setup;

/// What is kept.
struct Keep {
    days: Option<u32>,
    count: Option<u32>,
}

/// Shows what is older or more than wanted, and moves it to the trash if told so.
pub(super) fn run(
    store: &FileStore,
    index: &SessionIndex,
    args: &PruneArgs,
) -> Result<u8, Failure> {
    if args.empty_trash {
        return empty_trash(store, args);
    }
    let settings = Setup::load(None, &[])?.loaded.settings.sessions;
    let keep = Keep {
        days: args.keep_days.or(settings.keep_days),
        count: args.keep_count.or(settings.keep_count),
    };
    if keep.days.is_none() && keep.count.is_none() {
        return Err(Failure::usage("Nothing says which sessions to keep.").hint(
            "Add --keep-days or --keep-count, or set sessions.keep_days or sessions.keep_count.",
        ));
    }
    let filter = Filter { empty: true, ..Filter::default() };
    let sessions = index.list(store, &filter).map_err(|error| Failure::from(error.info()))?;
    let now = SystemClock.now();
    let days = |session: &SessionSummary| now.since(session.updated).as_secs() / 86_400;
    let goes = sessions.iter().enumerate().filter(|(place, session)| {
        let old = keep.days.is_some_and(|most| days(session) >= u64::from(most));
        let many = keep.count.is_some_and(|most| *place >= most as usize);
        (old || many) && !session.live
    });
    let mut text = String::new();
    let mut count = 0;
    for (_, session) in goes {
        count += 1;
        if args.yes {
            delete::discard(store, session.exec)?;
        }
        if args.json {
            text.push_str(&json_line(&json!({"exec": session.exec, "deleted": args.yes}))?);
        } else {
            text.push_str(&list::line(session, true));
        }
    }
    if !args.json {
        let _ = match (count, args.yes) {
            (0, _) => writeln!(text, "Nothing is older or more than is kept."),
            (_, true) => writeln!(
                text,
                "{count} sessions are in the trash. `loon sessions undelete ID` brings one back."
            ),
            (_, false) => writeln!(
                text,
                "{count} sessions would go to the trash; --yes moves them there. Archived sessions and \
                 those in use stay."
            ),
        };
    }
    super::super::print(&text)
}

fn empty_trash(store: &FileStore, args: &PruneArgs) -> Result<u8, Failure> {
    let discarded = store.discarded().map_err(|error| failed(store, &error))?;
    let mut text = String::new();
    for exec in &discarded {
        if args.yes {
            store.destroy(*exec).map_err(|error| failed(store, &error))?;
        }
        if args.json {
            text.push_str(&json_line(&json!({"exec": exec, "removed": args.yes}))?);
        } else {
            let _ = writeln!(text, "{exec}");
        }
    }
    if !args.json {
        let _ = match (discarded.len(), args.yes) {
            (0, _) => writeln!(text, "The trash is empty."),
            (count, true) => writeln!(text, "{count} sessions are gone for good."),
            (count, false) => {
                writeln!(text, "{count} sessions would be gone for good; --yes removes them.")
            }
        };
    }
    super::super::print(&text)
}
