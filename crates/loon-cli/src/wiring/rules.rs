//! Where an "always in this project" goes: the project's settings for this machine.

use std::path::PathBuf;

use loon_api::{ErrorCode, ErrorInfo, PermissionRule, RuleEffect};
use loon_config::{Layer, edit};
use loon_core::RuleKeeper;

use super::SetupPaths;

/// Writes to `.loon/config.local.toml`.
pub(super) struct LocalRules {
    setup: SetupPaths,
}

impl LocalRules {
    pub(super) fn new(setup: SetupPaths) -> Self {
        Self { setup }
    }
}

impl RuleKeeper for LocalRules {
    fn keep(&self, rule: &PermissionRule) -> Result<PathBuf, ErrorInfo> {
        let setup = self.setup.with_trust_of_now().map_err(|error| error.info())?;
        if !setup.trusted {
            // An allow rule in a folder that nobody trusts would be ignored at the next start.
            let message = "This folder is not trusted, so the rule holds for this session only.";
            return Err(ErrorInfo::new(ErrorCode::Denied, message)
                .hint("`loon trust` in this folder lets its settings allow things."));
        }
        let change = |text: &str| edit::add_rule(text, RuleEffect::Allow, rule);
        let file = setup.files.of(Layer::Local).map(PathBuf::from).unwrap_or_default();
        setup.update(Layer::Local, change).map_err(|error| {
            let info = error.info();
            let message = format!(
                "The rule holds for this session only, for {} was not changed: {}",
                file.display(),
                info.message
            );
            ErrorInfo { message, ..info }
        })?;
        Ok(file)
    }
}
