//! The settings, as one tree of types. What a field is called, what it means, its range, whether it
//! is secret, read-only, live or open to folders nobody has trusted yet: all of that stands on the
//! field, and the schema, the checks and the reference page read it there.
//!
//! Schema keywords beside the standard ones: `x-live` (a change takes effect while Loom runs),
//! `x-untrusted` (a project file may set it before the folder is trusted) and `x-strict` (a wrong
//! value refuses its file, because without it more would be allowed than was meant).

mod hooks;
mod supervisor;

use std::time::Duration;

use indexmap::IndexMap;
use loon_api::{Effort, Mode, ModelFeature, Money, PermissionRule, ToolSet};
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

pub use self::hooks::{Hook, Hooks};
pub use self::supervisor::Supervisor;
use crate::mcp::McpServer;
use crate::scalar;

/// Version of the settings format that this Loom reads and writes.
pub const SCHEMA_VERSION: u32 = 1;

/// All settings in force.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(title = "Settings of Loom")]
pub struct Settings {
    /// Version of the settings format. Written by Loom; a file with a newer one is refused.
    #[schemars(title = "Format version", extend("readOnly" = true, "x-untrusted" = true))]
    pub schema_version: u32,
    /// Servers that answer for models, under names of your choice. A model is called
    /// `provider/model` everywhere.
    #[schemars(title = "Providers", extend("x-live" = true))]
    pub providers: IndexMap<String, Provider>,
    /// Models that stand in for each other, under names of your choice. A combo is called
    /// `combo/name` wherever a model is named.
    #[schemars(title = "Combos", extend("x-live" = true))]
    pub combos: IndexMap<String, Combo>,
    /// How a session starts and how long it may work on one prompt.
    #[schemars(title = "Session")]
    pub session: Session,
    /// Which sessions `loon sessions prune` keeps. Nothing goes by itself.
    #[schemars(title = "Kept sessions")]
    pub sessions: Sessions,
    /// How much of a model's window a conversation may fill.
    #[schemars(title = "Context")]
    pub context: Context,
    /// Limits for a session with everything it starts. Checked before each model request.
    #[schemars(title = "Budget", extend("x-strict" = true))]
    pub budget: Budget,
    /// Who reviews what the model claims to have completed.
    #[schemars(title = "Supervisor")]
    pub supervisor: Supervisor,
    /// Which calls run, which ask and which are refused.
    #[schemars(title = "Permissions", extend("x-strict" = true))]
    pub permissions: Permissions,
    /// What is masked before anything is recorded, shown or sent on.
    #[schemars(title = "Secrets")]
    pub secrets: Secrets,
    /// Colours and characters.
    #[schemars(title = "Appearance")]
    pub appearance: Appearance,
    /// How the full screen behaves.
    #[schemars(title = "Screen")]
    pub ui: Ui,
    /// Pages that the `fetch` tool reads.
    #[schemars(title = "Web")]
    pub web: Web,
    /// Documentation of libraries, from Context7.
    #[schemars(title = "Context7")]
    pub context7: Context7,
    /// Programs of yours that the model can call, under the names it calls them by. They are asked in
    /// lines of JSON, each in a process of its own, and judged like commands.
    #[schemars(title = "Tools")]
    pub tools: IndexMap<String, UserTool>,
    /// Programs and addresses that hear of what a session does, and can hold it up.
    #[schemars(title = "Hooks")]
    pub hooks: Hooks,
    /// MCP servers, under names of your choice. A tool `find` of the server `lab` is called
    /// `mcp__lab__find`. Those of the project's `.mcp.json` are used too once the folder is trusted.
    #[schemars(title = "MCP servers", extend("x-live" = true))]
    pub mcp: IndexMap<String, McpServer>,
    /// Prompts that a `loon worker --schedules` runs again and again, under names of your choice.
    #[schemars(title = "Schedules")]
    pub schedules: IndexMap<String, Schedule>,
    /// Workers on other machines, under names of your choice: `loon exec --worker NAME` runs there.
    #[schemars(title = "Workers")]
    pub workers: IndexMap<String, Worker>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            providers: IndexMap::new(),
            combos: IndexMap::new(),
            session: Session::default(),
            sessions: Sessions::default(),
            context: Context::default(),
            budget: Budget::default(),
            supervisor: Supervisor::default(),
            permissions: Permissions::default(),
            secrets: Secrets::default(),
            appearance: Appearance::default(),
            ui: Ui::default(),
            web: Web::default(),
            context7: Context7::default(),
            tools: IndexMap::new(),
            hooks: Hooks::default(),
            mcp: IndexMap::new(),
            schedules: IndexMap::new(),
            workers: IndexMap::new(),
        }
    }
}

/// A program that the model can call. It reads `{"id", "input"}` a line and answers with
/// `{"id", "ok"}` or `{"id", "error"}`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct UserTool {
    /// The program and its arguments. It runs in the workspace root.
    #[schemars(title = "Command")]
    pub command: Vec<String>,
    /// What it does and when to use it, for the model.
    #[schemars(title = "Description")]
    pub description: String,
    /// JSON Schema of its input, of type object, as text.
    #[serde(default = "any_object")]
    #[schemars(title = "Parameters")]
    pub parameters: String,
    /// Seconds a call may take. Without it, `session.tool_timeout_secs` holds.
    #[serde(default)]
    #[schemars(title = "Timeout", range(min = 1, max = 86400))]
    pub timeout_secs: Option<u64>,
    /// Start the program with the session, so that the first call need not wait for it.
    #[serde(default)]
    #[schemars(title = "Start ahead")]
    pub warm: bool,
}

fn any_object() -> String {
    r#"{"type":"object"}"#.into()
}

/// A prompt that is run again and again. It needs either `every` or `cron`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Schedule {
    /// At each multiple of this time since 1970 in UTC, such as `24h`: at midnight.
    #[serde(default, deserialize_with = "scalar::some_period")]
    #[schemars(title = "Period", schema_with = "scalar::period_schema")]
    pub every: Option<Duration>,
    /// When these five fields of cron say, in UTC: minute, hour, day, month, day of the week.
    #[serde(default)]
    #[schemars(title = "Cron line")]
    pub cron: Option<String>,
    /// The prompt.
    #[schemars(title = "Prompt")]
    pub prompt: String,
    /// Absolute folder to work in.
    #[schemars(title = "Folder")]
    pub cwd: String,
    /// The model, as `provider/model`; `session.model` without it.
    #[serde(default)]
    #[schemars(title = "Model")]
    pub model: Option<String>,
    /// The permission mode; `session.mode` without it. Nobody is asked: what would ask is denied.
    #[serde(default)]
    #[schemars(title = "Permission mode")]
    pub mode: Option<Mode>,
    /// How long before it the connection to the model is opened, such as `10s`. Not without it.
    #[serde(default, deserialize_with = "scalar::some_period")]
    #[schemars(title = "Lead", schema_with = "scalar::period_schema")]
    pub warm_lead: Option<Duration>,
}

/// A `loon worker` that listens elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Worker {
    /// Where it listens (`https://build.example.org`). The token and the prompts go there as they are,
    /// so use `https` beyond this machine.
    #[schemars(title = "URL")]
    pub url: String,
    /// Name of the environment variable that holds its token.
    #[serde(default)]
    #[schemars(title = "Token variable")]
    pub token_env: Option<String>,
}

/// The wire format a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ProviderKind {
    /// Chat completions, the format that most servers speak.
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    /// Responses, the newer format of the same family.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// Messages.
    #[serde(rename = "anthropic")]
    Anthropic,
    /// Answers read from a file, without a network. For demonstrations and tests.
    #[serde(rename = "script")]
    Script,
}

/// A server that answers for models.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Provider {
    /// The wire format it speaks.
    #[schemars(title = "Wire format", extend("x-live" = true))]
    pub kind: ProviderKind,
    /// Where it listens, with the version segment (`http://127.0.0.1:8081/v1`). Required for every
    /// kind but `script`.
    #[serde(default)]
    #[schemars(title = "Base URL", extend("x-live" = true))]
    pub base_url: Option<String>,
    /// File with the answers of a `script` provider. A relative path begins at the workspace root.
    #[serde(default)]
    #[schemars(title = "Script file", extend("x-live" = true))]
    pub script: Option<String>,
    /// Name of the environment variable that holds the key. Unset is fine for a server that wants
    /// none.
    #[serde(default)]
    #[schemars(title = "Key variable", extend("x-live" = true))]
    pub api_key_env: Option<String>,
    /// The key itself. `api_key_env` keeps it out of files and is the better choice.
    #[serde(default)]
    #[schemars(title = "Key", schema_with = "scalar::secret_schema", extend("x-live" = true))]
    pub api_key: Option<SecretString>,
    /// Further HTTP headers of each request.
    #[serde(default)]
    #[schemars(title = "Headers", schema_with = "scalar::secret_map_schema", extend("x-live" = true))]
    pub headers: IndexMap<String, SecretString>,
    /// Seconds until a connection must stand.
    #[serde(default = "connect_timeout")]
    #[schemars(title = "Connect timeout", range(min = 1, max = 600), extend("x-live" = true))]
    pub connect_timeout_secs: u64,
    /// Seconds that may pass without a byte from the server, before the first one too. Local models
    /// can think long about a long prompt.
    #[serde(default = "idle_timeout")]
    #[schemars(title = "Idle timeout", range(min = 1, max = 86400), extend("x-live" = true))]
    pub idle_timeout_secs: u64,
    /// What is known of its models, by the name the server knows them under. A model that is not
    /// listed can be used all the same.
    #[serde(default)]
    #[schemars(title = "Models", extend("x-live" = true))]
    pub models: IndexMap<String, ModelSettings>,
}

fn connect_timeout() -> u64 {
    10
}

fn idle_timeout() -> u64 {
    300
}

/// What is known of one model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelSettings {
    /// Most tokens of one request and its answer together.
    #[schemars(title = "Context window", range(min = 1), extend("x-live" = true))]
    pub context_tokens: Option<u64>,
    /// Most tokens of one answer.
    #[schemars(title = "Longest answer", range(min = 1), extend("x-live" = true))]
    pub max_output_tokens: Option<u64>,
    /// How hard it should think.
    #[schemars(title = "Reasoning effort", extend("x-live" = true))]
    pub effort: Option<Effort>,
    /// What it can do. The list is whole: what it does not name, the model cannot do. Without it a
    /// model can do what its wire format always can (`tools`, and for `openai-responses`
    /// `structured_output`), and `reasoning` if `effort` is set; nothing more is taken for granted.
    #[schemars(title = "Features", extend("x-live" = true))]
    pub features: Option<Vec<ModelFeature>>,
    /// What its tokens cost, in place of what Loom's price list says of the host. Where neither says
    /// anything, the cost of its requests counts as unknown.
    #[schemars(title = "Price", extend("x-live" = true))]
    pub price: Option<Price>,
}

/// Models that stand in for each other: what the first cannot answer goes to the next.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Combo {
    /// The models as `provider/model`, the preferred one first.
    #[schemars(title = "Members", extend("x-live" = true))]
    pub members: Vec<String>,
    /// How often a failed request to a member is repeated before the next one is asked.
    #[serde(default = "combo_retries")]
    #[schemars(title = "Retries", range(min = 0, max = 2), extend("x-live" = true))]
    pub retries: u32,
    /// What a member must be able to do. One that is not known to is left out.
    #[serde(default)]
    #[schemars(title = "Needs", extend("x-live" = true))]
    pub needs: Vec<ModelFeature>,
    /// Tokens that a member's context window must hold. One that is not known to is left out.
    #[serde(default)]
    #[schemars(title = "Least context window", range(min = 1), extend("x-live" = true))]
    pub min_context: Option<u64>,
}

fn combo_retries() -> u32 {
    2
}

/// US dollars for a million tokens, as exact decimals (`"0.25"`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Price {
    /// For input tokens.
    #[serde(deserialize_with = "scalar::money")]
    #[schemars(title = "Input", schema_with = "scalar::money_schema")]
    pub input: Money,
    /// For input tokens read from the provider's cache. Without it they cost as much as others.
    #[serde(default, deserialize_with = "scalar::some_money")]
    #[schemars(title = "Cached input", schema_with = "scalar::money_schema")]
    pub cached: Option<Money>,
    /// For input tokens written to the provider's cache. Without it, requests that report such tokens
    /// have no known price.
    #[serde(default, deserialize_with = "scalar::some_money")]
    #[schemars(title = "Cache writes", schema_with = "scalar::money_schema")]
    pub cache_write: Option<Money>,
    /// For output tokens.
    #[serde(deserialize_with = "scalar::money")]
    #[schemars(title = "Output", schema_with = "scalar::money_schema")]
    pub output: Money,
    /// For output tokens spent on reasoning. Without it they cost as much as others.
    #[serde(default, deserialize_with = "scalar::some_money")]
    #[schemars(title = "Reasoning", schema_with = "scalar::money_schema")]
    pub reasoning: Option<Money>,
}

/// How a session starts and how long it may work on one prompt.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Session {
    /// The model a session begins with, as `provider/model`. A session under way keeps its own.
    #[schemars(title = "Model", extend("x-live" = true, "x-untrusted" = true))]
    pub model: Option<String>,
    /// What happens to calls that no rule decides. A change reaches the session under way unless
    /// another mode was chosen for it. `bypass` has no effect in a project's files; a folder that is
    /// not trusted can only set `plan`.
    #[schemars(
        title = "Permission mode",
        extend("x-live" = true, "x-untrusted" = true, "x-strict" = true)
    )]
    pub mode: Mode,
    /// Most model requests for one prompt.
    #[schemars(title = "Steps for a prompt", range(min = 1, max = 100_000), extend("x-live" = true))]
    pub max_turns: u32,
    /// Seconds a tool call may take if neither the call nor the tool says otherwise.
    #[schemars(title = "Tool timeout", range(min = 1, max = 86400), extend("x-live" = true))]
    pub tool_timeout_secs: u64,
    /// How many tools a request offers. `lean` is for small models with little room.
    #[schemars(title = "Tool set", extend("x-live" = true, "x-untrusted" = true))]
    pub tools: ToolSet,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            model: None,
            mode: Mode::Default,
            max_turns: 500,
            tool_timeout_secs: 600,
            tools: ToolSet::Full,
        }
    }
}

/// Which sessions `loon sessions prune` keeps. It shows what would go, and moves it to the trash only
/// with `--yes`. Archived sessions always stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Sessions {
    /// Those used in so many days. Absent keeps them whatever their age.
    #[schemars(title = "Days", range(min = 1, max = 36500))]
    pub keep_days: Option<u32>,
    /// The newest so many. Absent keeps them however many they are.
    #[schemars(title = "Number", range(min = 1, max = 1_000_000))]
    pub keep_count: Option<u32>,
}

/// How much of a model's window a conversation may fill. Sizes are estimates, corrected by what the
/// provider counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Context {
    /// Most tokens of a request, if the model's window should not be used up. For a model whose window
    /// is not known, this is the window.
    #[schemars(title = "Most tokens", range(min = 1000), extend("x-live" = true))]
    pub max_tokens: Option<u64>,
    /// From how many tokens on the older part of a conversation gives way to a summary. At most 80 % of
    /// the window count; absent means that, or less where the longest answer needs more room.
    #[schemars(title = "Compact at", range(min = 1000), extend("x-live" = true))]
    pub compact_at: Option<u64>,
}

/// Limits for a session with everything it starts. Absent means no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Budget {
    /// Most money to spend, in US dollars. Requests without a known price count as nothing and are
    /// reported as such.
    #[serde(deserialize_with = "scalar::some_money")]
    #[schemars(title = "Dollars", schema_with = "scalar::money_schema", extend("x-live" = true))]
    pub max_usd: Option<Money>,
    /// Most tokens, input and output together.
    #[schemars(title = "Tokens", range(min = 1), extend("x-live" = true))]
    pub max_tokens: Option<u64>,
    /// Most model requests.
    #[schemars(title = "Requests", range(min = 1), extend("x-live" = true))]
    pub max_requests: Option<u64>,
    /// Longest time at work, such as `90s`, `10m` or `1h30m`. Waiting for a person does not count.
    /// Holds for sessions that begin later.
    #[serde(deserialize_with = "scalar::some_period")]
    #[schemars(title = "Time at work", schema_with = "scalar::period_schema")]
    pub deadline: Option<Duration>,
}

/// Which calls run, which ask and which are refused. The strongest matching rule decides: deny, then
/// ask, then allow, then the mode. Deny and ask rules of all files hold together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Permissions {
    /// Calls that run without a question. A prefix is a convenience, not a sandbox.
    #[schemars(title = "Allow", extend("x-live" = true))]
    pub allow_rules: Vec<PermissionRule>,
    /// Calls that always ask.
    #[schemars(title = "Ask", extend("x-live" = true, "x-untrusted" = true))]
    pub ask_rules: Vec<PermissionRule>,
    /// Calls that are refused.
    #[schemars(title = "Deny", extend("x-live" = true, "x-untrusted" = true))]
    pub deny_rules: Vec<PermissionRule>,
    /// Folders besides the workspace root inside which mode `auto` may write. `~` is your home;
    /// relative paths begin at the workspace root.
    #[schemars(title = "Write roots", extend("x-live" = true))]
    pub write_roots: Vec<String>,
}

/// What is masked before anything is recorded, shown or sent on. Keys of these settings and of the
/// environment always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Secrets {
    /// Mask also what is a credential by its form: tokens of well-known services, private keys,
    /// passwords in URLs and after `password =`.
    #[schemars(title = "By their form", extend("x-live" = true))]
    pub shapes: bool,
}

impl Default for Secrets {
    fn default() -> Self {
        Self { shapes: true }
    }
}

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ColorChoice {
    /// If the terminal has it and `NO_COLOR` is not set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Colours and characters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Appearance {
    /// Name of a theme: `loom-dark`, `loom-light` or `loom-contrast`; `auto` goes by the background
    /// that the terminal tells.
    #[schemars(title = "Theme", extend("x-live" = true, "x-untrusted" = true))]
    pub theme: String,
    /// When to use colour.
    #[schemars(title = "Colour", extend("x-live" = true, "x-untrusted" = true))]
    pub color: ColorChoice,
    /// Draw with ASCII characters only.
    #[schemars(title = "ASCII only", extend("x-live" = true, "x-untrusted" = true))]
    pub ascii: bool,
}

impl Default for Appearance {
    fn default() -> Self {
        Self { theme: "loom-dark".into(), color: ColorChoice::Auto, ascii: false }
    }
}

/// How the full screen behaves.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Ui {
    /// Let the screen use the mouse. Off, the terminal's own selection works.
    #[schemars(title = "Mouse", extend("x-live" = true, "x-untrusted" = true))]
    pub mouse: bool,
    /// Words in the empty composer.
    #[schemars(title = "Placeholder", extend("x-live" = true, "x-untrusted" = true))]
    pub placeholder: String,
    /// What the state line says while a turn runs.
    #[schemars(title = "Spinner text", extend("x-live" = true, "x-untrusted" = true))]
    pub spinner: String,
}

impl Default for Ui {
    fn default() -> Self {
        Self { mouse: true, placeholder: "what should be done?".into(), spinner: "working".into() }
    }
}

/// Pages that the `fetch` tool reads.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Web {
    /// Seconds a page may take, redirects and body included.
    #[schemars(title = "Page timeout", range(min = 1, max = 600), extend("x-live" = true))]
    pub timeout_secs: u64,
    /// Names that may lead to addresses outside the public network, such as a documentation server
    /// of your company. Any other name that does is refused.
    #[schemars(title = "Private hosts", extend("x-live" = true))]
    pub private_hosts: Vec<String>,
}

impl Default for Web {
    fn default() -> Self {
        Self { timeout_secs: 30, private_hosts: Vec::new() }
    }
}

/// Documentation of libraries, from Context7.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Context7 {
    /// Let the model search it. Off, its tools are not offered; switched on again, they are there
    /// from the next session on.
    #[schemars(title = "Enabled", extend("x-live" = true))]
    pub enabled: bool,
    /// Name of the environment variable that holds the key. A key that is set there goes before
    /// `api_key`.
    #[schemars(title = "Key variable", extend("x-live" = true))]
    pub api_key_env: String,
    /// The key itself. `api_key_env` keeps it out of files and is the better choice.
    #[schemars(title = "Key", schema_with = "scalar::secret_schema", extend("x-live" = true))]
    pub api_key: Option<SecretString>,
    /// Seconds a request may take.
    #[schemars(title = "Timeout", range(min = 1, max = 600), extend("x-live" = true))]
    pub timeout_secs: u64,
    /// Where it answers, for a server of your own.
    #[schemars(title = "Base URL", extend("x-live" = true))]
    pub base_url: String,
}

impl Default for Context7 {
    fn default() -> Self {
        Self {
            enabled: true,
            api_key_env: "CONTEXT7_API_KEY".into(),
            api_key: None,
            timeout_secs: 30,
            base_url: "https://context7.com".into(),
        }
    }
}
