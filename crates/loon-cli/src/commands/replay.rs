//! `loon replay`.

use std::fmt::Write as _;
use std::path::Path;

use loon_api::{Envelope, ExecutionId};
use loon_core::replay::script::ScriptWriter;
use loon_core::replay::{Replay, Replayed};
use loon_kernel::{FileStore, JournalStore as _};

use crate::args::ReplayArgs;
use crate::failure::Failure;
use crate::paths::Paths;

/// Folds a session again and says whether the present code makes of it what was made then, or writes
/// it as a script. Exit status 1 if something differs.
pub(super) fn run(args: &ReplayArgs) -> Result<u8, Failure> {
    let store = FileStore::new(Paths::from_environment()?.data);
    let exec = super::find_session(&store, &args.id)?;
    if let Some(file) = &args.as_script {
        return write_script(&store, exec, file);
    }
    let mut replay = Replay::new(args.turn);
    read(&store, exec, |record| replay.take(record))?;
    let found = replay.finish();
    if found.difference.is_none() {
        check(&store, exec)?;
    }
    let status = u8::from(found.difference.is_some());
    let text = if args.json {
        let line = serde_json::to_string(&found);
        line.map_err(|error| Failure::other(format!("Cannot write the result: {error}")))? + "\n"
    } else {
        told(&found)
    };
    super::print(&text)?;
    Ok(status)
}

/// That nothing differs says little of a journal that is not as it was written.
fn check(store: &FileStore, exec: ExecutionId) -> Result<(), Failure> {
    let verified = store.verify(exec).map_err(|error| Failure::from(error.info()))?;
    let Some(damage) = verified.damage.filter(|_| !verified.unfinished) else { return Ok(()) };
    let message = format!("Journal of session {exec}, line {}: {}.", damage.line, damage.reason);
    Err(Failure::other(message)
        .hint(format!("`loon sessions repair {exec}` can save the records before it.")))
}

/// Shows the records to `each` until it has enough.
fn read(
    store: &FileStore,
    exec: ExecutionId,
    mut each: impl FnMut(&Envelope) -> bool,
) -> Result<(), Failure> {
    for record in store.read(exec).map_err(|error| Failure::from(error.info()))? {
        if !each(&record.map_err(|error| Failure::from(error.info()))?) {
            break;
        }
    }
    Ok(())
}

fn write_script(store: &FileStore, exec: ExecutionId, file: &Path) -> Result<u8, Failure> {
    let mut writer = ScriptWriter::default();
    read(store, exec, |record| {
        writer.take(record);
        true
    })?;
    #[expect(clippy::disallowed_methods, reason = "the user named this file on the command line")]
    std::fs::write(file, writer.finish()).map_err(|error| {
        Failure::other(format!("Cannot write the script to {}: {error}", file.display()))
    })?;
    Ok(0)
}

fn told(found: &Replayed) -> String {
    let mut text = format!(
        "{} requests and {} receipts are what they were.\n",
        found.requests, found.receipts
    );
    if found.without_digest > 0 {
        let _ = writeln!(
            text,
            "{} requests were recorded without a digest and could not be compared.",
            found.without_digest
        );
    }
    if let Some(why) = &found.ended {
        let _ = writeln!(text, "The replay ends here, because {why}.");
    }
    if let Some(difference) = &found.difference {
        let turn = difference.turn.map(|turn| format!(", turn {turn}")).unwrap_or_default();
        let _ = writeln!(
            text,
            "Record {}{turn}: {} differs.\n  recorded  {}\n  now       {}",
            difference.seq, difference.what, difference.recorded, difference.now
        );
    }
    text
}
