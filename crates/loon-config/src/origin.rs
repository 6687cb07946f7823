//! Where a setting was written.

use std::fmt;
use std::path::PathBuf;

use loon_api::RuleOrigin;

/// The layers of settings, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// What holds if nobody says anything.
    BuiltIn,
    /// The user's own file.
    User,
    /// The project's shared file.
    Project,
    /// The project's file for this machine alone.
    Local,
    /// `LOON_` variables.
    Environment,
    /// `key=value` on the command line.
    CommandLine,
}

impl Layer {
    /// True for the files that lie in a project and come with it.
    pub fn is_project(self) -> bool {
        matches!(self, Self::Project | Self::Local)
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BuiltIn => "built in",
            Self::User => "user settings",
            Self::Project => "project settings",
            Self::Local => "local project settings",
            Self::Environment => "environment",
            Self::CommandLine => "command line",
        })
    }
}

/// Where a setting was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Which layer.
    pub layer: Layer,
    /// The file, if the layer is one.
    pub file: Option<PathBuf>,
    /// The variable, if the layer is the environment.
    pub variable: Option<String>,
    /// Line in the file, from 1.
    pub line: Option<u32>,
    /// Column in that line in characters, from 1.
    pub column: Option<u32>,
}

impl Origin {
    /// The origin of what nobody set.
    pub(crate) const BUILT_IN: Self =
        Self { layer: Layer::BuiltIn, file: None, variable: None, line: None, column: None };

    /// The same place as permission rules carry it.
    pub fn rule_origin(&self) -> RuleOrigin {
        RuleOrigin { source: self.source(), line: self.line }
    }

    /// The place without line and column.
    fn source(&self) -> String {
        match (&self.file, &self.variable) {
            (Some(file), _) => file.display().to_string(),
            (None, Some(variable)) => variable.clone(),
            (None, None) => self.layer.to_string(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
            if let Some(column) = self.column {
                write!(f, ":{column}")?;
            }
        }
        Ok(())
    }
}
