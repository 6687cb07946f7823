//! Programs that a former process of the session started and that outlived it, as they do when it is
//! killed.

use loon_exec::{Leftover, leftovers};
use tokio::task::JoinHandle;

use super::Session;
use crate::runtime::RuntimeError;

/// So many are named.
const NAMED: usize = 8;

/// A look for them that goes on beside the work.
#[derive(Default)]
pub(super) struct LeftoverLook(Option<JoinHandle<Vec<Leftover>>>);

impl Session {
    /// Begins to look for them.
    pub(super) fn look_for_leftovers(&mut self) {
        if self.lineage.is_child() || !self.resumed {
            return;
        }
        let children = self.conversation.children().iter().map(|child| child.started.child);
        let owners: Vec<String> = std::iter::once(self.recorder.exec())
            .chain(children)
            .map(|id| id.to_string())
            .collect();
        let look = tokio::task::spawn_blocking(move || leftovers(&owners));
        self.leftovers = LeftoverLook(Some(look));
    }

    /// Tells model and user of them, once.
    pub(crate) async fn tell_leftovers(&mut self) -> Result<(), RuntimeError> {
        let Some(look) = self.leftovers.0.take() else { return Ok(()) };
        // One that was cut off has found nothing; the turn is not held up for that.
        match words(&look.await.unwrap_or_default()) {
            Some(words) => self.add_notice(words).await,
            None => Ok(()),
        }
    }
}

fn words(found: &[Leftover]) -> Option<String> {
    if found.is_empty() {
        return None;
    }
    let named = found.iter().take(NAMED).map(|it| format!("{} ({})", it.pid, it.command));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match found.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "Programs that a former process of this session started may still run: {named}{more}. Nobody \
         reads what they say, and Loom does not end them. Do not end them without asking the user."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_named_with_their_numbers_up_to_a_bound() {
        let found: Vec<Leftover> =
            (1..=10).map(|pid| Leftover { pid, command: format!("sleep {pid}") }).collect();
        assert_eq!(words(&[]), None);
        let some = words(&found[..2]).unwrap();
        assert!(some.contains("may still run: 1 (sleep 1), 2 (sleep 2). Nobody"), "{some}");
        let many = words(&found).unwrap();
        assert!(many.contains("8 (sleep 8) and 2 more."), "{many}");
    }
}
