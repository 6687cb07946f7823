//! Typed settings in layers, their schema, and edits that keep comments. Knows no front end.
//!
//! [`load`] is pure: texts in, settings out. [`files`] reads and writes them at paths that the
//! caller names; nothing here looks at the environment.
//!
//! Two things differ from an ordinary merge of files, because safety hangs on them: permission rules
//! of all layers hold together, so that no layer can take a deny away; and a project's files can only
//! tighten until a person trusts the folder.

mod document;
pub mod edit;
pub mod environment;
mod error;
pub mod files;
mod hooks;
mod key;
mod load;
mod lock;
pub mod mcp;
mod merge;
mod origin;
mod rules;
mod scalar;
pub mod schema;
mod settings;
pub mod trust;
mod watch;

pub use error::ConfigError;
pub use load::{Entry, Ignored, Loaded, Sources, Warning, load};
pub use mcp::McpServer;
pub use origin::{Layer, Origin};
pub use scalar::parse_period;
pub use schema::{schema, without_login};
pub use settings::{
    Appearance, Budget, ColorChoice, Combo, Context7, Hook, Hooks, ModelSettings, Permissions,
    Price, Provider, ProviderKind, SCHEMA_VERSION, Schedule, Session, Settings, Supervisor, Ui,
    UserTool, Web, Worker,
};
pub use watch::{SettingsWatch, Snapshot};
