//! Where an "always in this project" goes: the project's settings for this machine.

use std::path::PathBuf;

use loon_api::{ErrorCode, ErrorInfo, PermissionRule, RuleEffect};
use loon_config::{Layer, edit, files};
use loon_core::RuleKeeper;

/// Writes to `.loon/config.local.toml`.
pub(super) struct LocalRules {
    files: files::Paths,
    trusted: bool,
}

impl LocalRules {
    pub(super) fn new(files: files::Paths, trusted: bool) -> Self {
        Self { files, trusted }
    }
}

impl RuleKeeper for LocalRules {
    fn keep(&self, rule: &PermissionRule) -> Result<PathBuf, ErrorInfo> {
        if !self.trusted {
            // An allow rule in a folder that nobody trusts would be ignored at the next start.
            let message = "This folder is not trusted, so the rule holds for this session only.";
            return Err(ErrorInfo::new(ErrorCode::Denied, message)
                .hint("`loon trust` in this folder lets its settings allow things."));
        }
        let change = |text: &str| edit::add_rule(text, RuleEffect::Allow, rule);
        files::update(&self.files, &[], self.trusted, Layer::Local, change)
            .map_err(|error| error.info())?;
        Ok(self.files.of(Layer::Local).map(Into::into).unwrap_or_default())
    }
}
