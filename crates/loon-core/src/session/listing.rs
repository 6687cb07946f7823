//! What a front end may ask about: guidance, skills and custom commands as they are now.

use loon_api::event::{CommandRefused, CommandsListed, GuidanceListed, SkillsListed};
use loon_api::{ErrorCode, ErrorInfo};

use super::Session;
use crate::custom::{Customs, read_customs};
use crate::deps::SessionOptions;
use crate::runtime::RuntimeError;
use crate::skills::SkillShelf;

/// Reads the custom commands away from the session's owner.
async fn customs(options: &SessionOptions) -> Result<Customs, ErrorInfo> {
    let (cwd, definitions) = (options.cwd.clone(), options.definitions.clone());
    away("custom commands", move || read_customs(&cwd, &definitions)).await
}

/// The custom commands as they are now.
pub(crate) async fn commands_listed(options: &SessionOptions) -> Result<CommandsListed, ErrorInfo> {
    let (commands, unusable) = customs(options).await?.listed();
    Ok(CommandsListed { commands, unusable })
}

/// The skills as they are now; `active` are the names of those that are.
pub(crate) async fn skills_listed(
    options: &SessionOptions,
    active: Vec<String>,
) -> Result<SkillsListed, ErrorInfo> {
    let shelf = SkillShelf::new(&options.cwd, &options.definitions);
    away("skills", move || shelf.read().listed(&active)).await
}

async fn away<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ErrorInfo> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        ErrorInfo::new(ErrorCode::Internal, format!("Reading the {what} was cut off: {error}"))
    })
}

impl Session {
    pub(super) async fn list_commands(&self) {
        match commands_listed(&self.deps.options).await {
            Ok(listed) => self.recorder.pass(None, listed).await,
            Err(error) => self.warn(error).await,
        }
    }

    pub(super) async fn list_skills(&self) {
        let active = self.conversation.record().skills.clone();
        match skills_listed(&self.deps.options, active).await {
            Ok(listed) => self.recorder.pass(None, listed).await,
            Err(error) => self.warn(error).await,
        }
    }

    pub(super) async fn list_guidance(&mut self, path: Option<String>) -> Result<(), RuntimeError> {
        self.read_all().await?;
        let (shelf, given) = (self.guidance_shelf(), self.conversation.given());
        let listing = away("guidance", move || shelf.list(path.as_deref(), &given)).await;
        match listing {
            Ok((path, sources)) => {
                self.recorder.pass(None, GuidanceListed { path, sources }).await;
            }
            Err(error) => self.warn(error).await,
        }
        Ok(())
    }

    /// Begins a turn with the text of a custom command, or says why not.
    pub(super) async fn send_custom(
        &mut self,
        name: String,
        arguments: &str,
        steer: bool,
    ) -> Result<(), RuntimeError> {
        let read = customs(&self.deps.options).await;
        match read.and_then(|customs| customs.expand(&name, arguments)) {
            Ok(text) => self.queue(text, steer).await?,
            Err(error) => self.recorder.pass(None, CommandRefused { name, steer, error }).await,
        }
        Ok(())
    }
}
