//! Decisions: rules and mode put to every part of a call.

mod command;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use loon_api::{
    Mode, PathAccess, PermissionRule, RuleEffect, RuleOrigin, RuleSet, Subject, ToolClass,
};
use serde::Serialize;

use crate::line::{Surroundings, survey};
use crate::path::Spot;
use crate::rules::Rule;
use crate::{Resolve, always, host, path};

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Exact name of the tool.
    pub tool: &'a str,
    /// What the tool does to the world.
    pub class: ToolClass,
    /// What the call would touch.
    pub subjects: &'a [Subject],
    /// What happens where no rule speaks.
    pub mode: Mode,
}

/// A decision with its reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// The strictest effect of the parts.
    pub effect: RuleEffect,
    /// What the call consists of, in the order of its subjects. Never empty.
    pub parts: Vec<Part>,
}

/// One part of a call and what happens to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// What it is.
    pub about: About,
    /// What happens to it.
    pub effect: RuleEffect,
    /// Why.
    pub reason: Reason,
    /// What would change it.
    pub remedy: Remedy,
}

/// What a part is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum About {
    /// A simple command of a shell line.
    Command {
        /// As it was written.
        text: String,
    },
    /// A file.
    Path {
        /// Read or write.
        access: PathAccess,
        /// Resolved, or as it was written where that is not possible.
        path: String,
    },
    /// A host.
    Host {
        /// In its one form, or the whole URL if it has no host.
        host: String,
    },
    /// The tool itself.
    Tool {
        /// Its name.
        name: String,
    },
}

/// Why a part is decided as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reason {
    /// A rule says so.
    Rule {
        /// What the rule says.
        effect: RuleEffect,
        /// The rule.
        rule: PermissionRule,
        /// Where it was written.
        origin: RuleOrigin,
    },
    /// No rule speaks of it, so the mode decides.
    Mode {
        /// The mode.
        mode: Mode,
        /// In which respect.
        text: String,
    },
    /// A protection that no rule takes away.
    BuiltIn {
        /// Which.
        text: String,
    },
    /// It was not understood.
    NotUnderstood {
        /// What was not.
        text: String,
    },
}

/// What would change the decision on a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Remedy {
    /// It is allowed already.
    None,
    /// This allow rule would cover it.
    Allow {
        /// The rule.
        rule: PermissionRule,
    },
    /// Only a change of the rule that decided it: a later allow rule does not outweigh it.
    ChangeRule {
        /// Where that rule was written.
        origin: RuleOrigin,
    },
    /// Nothing but another way to ask for it.
    Nothing {
        /// Why.
        text: String,
    },
}

/// The rules in force, made ready.
#[derive(Clone, Debug)]
pub struct Policy {
    rules: Vec<Rule>,
    write_roots: Vec<PathBuf>,
    home: Option<PathBuf>,
    root: PathBuf,
    protected: Vec<PathBuf>,
    shown: Vec<PathBuf>,
}

/// Name of a project's folder of settings.
const SETTINGS_FOLDER: &str = ".loon";

/// Names of the files in it that decide what is allowed.
const SETTINGS_FILES: [&str; 2] = ["config.toml", "config.local.toml"];

/// Name of the file that names the MCP servers of a project: programs that are started.
const SERVERS_FILE: &str = ".mcp.json";

impl Policy {
    /// A policy for a workspace. `root` is its absolute folder, `home` what `~` stands for.
    pub fn new(rules: RuleSet, home: Option<PathBuf>, root: PathBuf) -> Self {
        let RuleSet { rules, write_roots } = rules;
        let ready = rules
            .into_iter()
            .map(|(effect, rule, origin)| Rule::new(effect, rule, origin, &root, home.as_deref()))
            .collect();
        let protected = SETTINGS_FILES.map(|name| root.join(SETTINGS_FOLDER).join(name)).to_vec();
        let write_roots = write_roots.iter().map(|folder| path::normal(folder)).collect();
        Self { rules: ready, write_roots, home, root, protected, shown: Vec::new() }
    }

    /// Lets the files of another folder be read like those of the workspace.
    #[must_use]
    pub fn showing(mut self, folder: PathBuf) -> Self {
        self.shown.push(folder);
        self
    }

    /// Protects the files of another folder as well, such as that of the user's settings.
    #[must_use]
    pub fn protecting(mut self, folder: PathBuf) -> Self {
        self.protected.push(folder);
        self
    }

    /// The policy for a copy of the workspace in the folder `root`. What a rule says of a place in the
    /// workspace, it says of the same place in the copy; of the original only what is forbidden or
    /// asked still holds.
    #[must_use]
    pub fn moved(&self, root: PathBuf) -> Self {
        let mut rules = Vec::with_capacity(self.rules.len());
        for rule in &self.rules {
            let moved = rule.moved(&self.root, &root);
            if moved.is_none() || rule.effect > RuleEffect::Allow {
                rules.push(rule.clone());
            }
            rules.extend(moved);
        }
        let write_roots =
            self.write_roots.iter().map(|folder| match folder.strip_prefix(&self.root) {
                Ok(place) => root.join(place),
                Err(_) => folder.clone(),
            });
        let mut protected = self.protected.clone();
        protected.extend(SETTINGS_FILES.map(|name| root.join(".loon").join(name)));
        Self {
            rules,
            write_roots: write_roots.collect(),
            home: self.home.clone(),
            root,
            protected,
            shown: self.shown.clone(),
        }
    }

    /// Adds one rule, as an answer of "always" does for the rest of a session.
    pub fn add(&mut self, effect: RuleEffect, rule: PermissionRule, origin: RuleOrigin) {
        let rule = Rule::new(effect, rule, origin, &self.root, self.home.as_deref());
        self.rules.push(rule);
    }

    /// Every call of the tool is denied, so that it need not be offered.
    pub fn denies_tool(&self, tool: &str, class: ToolClass, mode: Mode) -> bool {
        let denied = |rule: &Rule| {
            rule.effect == RuleEffect::Deny && rule.is_whole_tool() && rule.names(tool)
        };
        (mode == Mode::Plan && !class.allowed_in_plan_mode()) || self.rules.iter().any(denied)
    }

    /// Folders and files that a deny rule keeps from a tool that looks at files, as written and with
    /// links resolved.
    pub fn hidden(&self, tool: &str, resolve: &Resolve<'_>) -> Vec<PathBuf> {
        let denied = self.rules.iter().filter(|rule| rule.effect == RuleEffect::Deny);
        denied
            .filter_map(|rule| rule.hides_from(tool))
            .flat_map(|it| [it.to_owned(), resolve(it)])
            .collect()
    }

    /// Files that a shell line names, as far as that is known before it runs, with their links
    /// resolved. What a program touches that names nothing is not among them.
    pub fn files_of_line(
        &self,
        line: &str,
        cwd: &Path,
        resolve: &Resolve<'_>,
    ) -> Vec<(PathAccess, PathBuf)> {
        let around = Surroundings { home: self.home.as_deref(), resolve };
        let commands = survey(line, cwd, &around).commands;
        let touches = commands.iter().flat_map(|observed| &observed.touches);
        touches
            .flat_map(|touch| touch.spots.iter().map(|spot| (touch.access, spot.real.clone())))
            .collect()
    }

    /// Decides on a call. `resolve` gives a path with the links of its existing part resolved.
    pub fn decide(&self, request: &Request<'_>, resolve: &Resolve<'_>) -> Judgement {
        let call = Call { policy: self, request, resolve };
        let parts = call.parts();
        let effect = parts.iter().map(|part| part.effect).max().unwrap_or(RuleEffect::Ask);
        Judgement { effect, parts }
    }

    /// The one rule that would allow the call from now on, if a single one of the right width does.
    pub fn always(&self, request: &Request<'_>, resolve: &Resolve<'_>) -> Option<PermissionRule> {
        let rule = always::one_rule(&self.decide(request, resolve))?;
        let mut wider = self.clone();
        let origin = RuleOrigin { source: "session".to_owned(), line: None };
        wider.add(RuleEffect::Allow, rule.clone(), origin);
        let covered = wider.decide(request, resolve).effect == RuleEffect::Allow;
        covered.then_some(rule)
    }
}

impl Judgement {
    /// One sentence for each part that made the decision: what it is, and why.
    pub fn reasons(&self) -> Vec<String> {
        let deciding = self.parts.iter().filter(|part| part.effect == self.effect);
        let mut reasons: Vec<String> =
            deciding.map(|part| format!("{}: {}.", part.about, part.reason)).collect();
        reasons.dedup();
        reasons
    }
}

/// One call under judgement.
pub(crate) struct Call<'a> {
    policy: &'a Policy,
    request: &'a Request<'a>,
    resolve: &'a Resolve<'a>,
}

/// A file named by a call.
struct PathUse<'a> {
    access: PathAccess,
    spot: &'a Spot,
    deep: bool,
    /// It is named in a shell line rather than by a tool of its own.
    by_shell: bool,
}

impl<'a> Call<'a> {
    fn parts(&self) -> Vec<Part> {
        let request = self.request;
        if request.mode == Mode::Plan && !request.class.allowed_in_plan_mode() {
            return vec![self.plan_part()];
        }
        let mut parts: Vec<Part> = self.whole_tool_part().into_iter().collect();
        let mut spoken = false;
        for subject in request.subjects {
            match subject {
                Subject::Path { access, path } | Subject::Tree { access, path } => {
                    let spot = Spot::new(&self.policy.root, path, self.resolve);
                    let deep = matches!(subject, Subject::Tree { .. });
                    let used = PathUse { access: *access, spot: &spot, deep, by_shell: false };
                    spoken |= *access == PathAccess::Write || request.class == ToolClass::Reads;
                    parts.push(self.path_part(&used));
                }
                Subject::Command { line, cwd } => {
                    let home = self.policy.home.as_deref();
                    let around = Surroundings { home, resolve: self.resolve };
                    let surveyed = survey(line, cwd, &around);
                    spoken = true;
                    self.line_parts(surveyed, &mut parts);
                }
                Subject::Url { url } => {
                    spoken |= request.class == ToolClass::Network;
                    parts.push(self.url_part(url));
                }
            }
        }
        if !spoken || parts.is_empty() {
            parts.push(self.tool_part());
        }
        parts
    }

    fn plan_part(&self) -> Part {
        let text = "plan mode changes nothing and starts no program".to_owned();
        Part {
            about: self.about_tool(),
            effect: RuleEffect::Deny,
            reason: Reason::Mode { mode: Mode::Plan, text: text.clone() },
            remedy: Remedy::Nothing { text: "only leaving plan mode changes it".to_owned() },
        }
    }

    fn about_tool(&self) -> About {
        About::Tool { name: self.request.tool.to_owned() }
    }

    /// The strictest of the rules that match.
    fn strictest(&self, matches: impl Fn(&Rule) -> bool) -> Option<&'a Rule> {
        self.policy.rules.iter().filter(|rule| matches(rule)).max_by_key(|rule| rule.effect)
    }

    /// The strictest rule about the tool as a whole.
    fn whole_tool_rule(&self) -> Option<&'a Rule> {
        self.strictest(|rule| rule.is_whole_tool() && rule.names(self.request.tool))
    }

    fn whole_tool_part(&self) -> Option<Part> {
        let rule = self.whole_tool_rule()?;
        (rule.effect > RuleEffect::Allow).then(|| decided(self.about_tool(), rule))
    }

    /// The allow rule about the tool as a whole, if no stricter one speaks of it.
    fn wide_allow(&self) -> Option<&'a Rule> {
        self.whole_tool_rule().filter(|rule| rule.effect == RuleEffect::Allow)
    }

    /// The tool itself, where its subjects do not say what it does.
    fn tool_part(&self) -> Part {
        if let Some(rule) = self.whole_tool_rule() {
            return decided(self.about_tool(), rule);
        }
        let allowed = self.request.mode == Mode::Bypass
            || matches!(self.request.class, ToolClass::Reads | ToolClass::Session);
        let text = match self.request.class {
            ToolClass::Reads => "it only looks",
            ToolClass::Session => "it keeps the session's own books",
            ToolClass::Writes => "it changes files",
            ToolClass::Executes => "it starts programs",
            ToolClass::Network => "it talks to a network",
            ToolClass::Remote => "it asks an MCP server, which may do anything",
        };
        let rule = PermissionRule {
            tool: self.request.tool.to_owned(),
            path_prefix: None,
            command_prefix: None,
            host: None,
        };
        self.by_mode(self.about_tool(), allowed, text, Remedy::Allow { rule })
    }

    fn by_mode(&self, about: About, allowed: bool, text: &str, remedy: Remedy) -> Part {
        let reason = Reason::Mode { mode: self.request.mode, text: text.to_owned() };
        if allowed {
            Part { about, effect: RuleEffect::Allow, reason, remedy: Remedy::None }
        } else {
            Part { about, effect: RuleEffect::Ask, reason, remedy }
        }
    }

    fn url_part(&self, url: &str) -> Part {
        let Some(host) = host::of_url(url) else {
            let about = About::Host { host: url.to_owned() };
            return not_understood(about, "the URL names no host".to_owned());
        };
        let about = About::Host { host: host.clone() };
        let tool = self.request.tool;
        let private = host::is_private(&host);
        let rule = self.strictest(|rule| rule.names(tool) && rule.matches_host(&host));
        // Who allows a tool the network does not mean the services of this machine and those
        // around it: they take a rule that names the host.
        let wide = if private { None } else { self.wide_allow() };
        if let Some(rule) = rule.or(wide) {
            return decided(about, rule);
        }
        let remedy = Remedy::Allow {
            rule: PermissionRule {
                tool: tool.to_owned(),
                path_prefix: None,
                command_prefix: None,
                host: Some(host),
            },
        };
        let allowed = self.request.mode == Mode::Bypass;
        let text = if private {
            "it reaches this machine or a network around it, which only a rule for the host allows"
        } else {
            "it talks to a network"
        };
        self.by_mode(about, allowed, text, remedy)
    }

    /// The strictest rule about a file.
    fn path_rule(&self, used: &PathUse<'_>) -> Option<&'a Rule> {
        let tool = self.request.tool;
        self.strictest(|rule| {
            if !rule.names_for_path(tool, used.access, used.by_shell) {
                return false;
            }
            let of_kin = rule.is_whole_tool() && !rule.names(tool);
            of_kin || rule.matches_path(used.spot, used.deep, self.resolve)
        })
    }

    fn path_part(&self, used: &PathUse<'_>) -> Part {
        let about = about_path(used);
        let rule = self.path_rule(used);
        let strict = rule.filter(|rule| rule.effect == RuleEffect::Deny);
        if let Some(rule) = strict {
            return decided(about, rule);
        }
        if used.access == PathAccess::Write && self.is_protected(used) {
            return protected(about);
        }
        if let Some(rule) = rule.or_else(|| self.wide_allow()) {
            return decided(about, rule);
        }
        let (allowed, text) = self.path_default(used);
        let name = match (used.by_shell, used.access) {
            (false, _) => self.request.tool,
            (true, PathAccess::Write) => "write",
            (true, PathAccess::Read) => "read",
        };
        let root = &self.policy.root;
        let remedy = Remedy::Allow {
            rule: PermissionRule {
                tool: name.to_owned(),
                path_prefix: Some(path::for_rule(
                    &used.spot.real,
                    root,
                    self.policy.home.as_deref(),
                )),
                command_prefix: None,
                host: None,
            },
        };
        self.by_mode(about, allowed, text, remedy)
    }

    /// What the mode says of a file that no rule speaks of.
    fn path_default(&self, used: &PathUse<'_>) -> (bool, &'static str) {
        let mode = self.request.mode;
        if mode == Mode::Bypass {
            return (true, "everything is allowed");
        }
        if self.request.class == ToolClass::Session {
            return (true, "it keeps the session's own books");
        }
        match used.access {
            PathAccess::Read if self.is_inside(used.spot) => {
                (true, "it reads inside the workspace")
            }
            PathAccess::Read if self.is_shown(used.spot) => {
                (true, "it reads what a tool put there for it")
            }
            PathAccess::Read => (false, "it reads outside the workspace"),
            PathAccess::Write if mode != Mode::Auto => (false, "it changes a file"),
            PathAccess::Write if !self.is_inside(used.spot) => {
                (false, "it changes a file outside the write roots")
            }
            PathAccess::Write if steers_git(used.spot) => {
                (false, "it changes what Git runs by itself")
            }
            PathAccess::Write => (true, "it changes a file inside the write roots"),
        }
    }

    fn is_inside(&self, spot: &Spot) -> bool {
        let policy = self.policy;
        std::iter::once(&policy.root).chain(&policy.write_roots).any(|folder| {
            spot.real.starts_with(folder) || spot.real.starts_with((self.resolve)(folder))
        })
    }

    fn is_shown(&self, spot: &Spot) -> bool {
        self.policy.shown.iter().any(|folder| spot.real.starts_with((self.resolve)(folder)))
    }

    fn is_protected(&self, used: &PathUse<'_>) -> bool {
        [&used.spot.real, &used.spot.named].into_iter().any(|path| {
            let listed = self.policy.protected.iter().any(|folder| {
                let real = (self.resolve)(folder);
                path.starts_with(folder)
                    || path.starts_with(&real)
                    || (used.deep && (folder.starts_with(path) || real.starts_with(path)))
            });
            listed || holds_settings(path)
        })
    }
}

/// A settings file of this or another project, or the folder of such files, whatever the case of
/// the name. Another folder put in its place, or a link, brings settings with it.
fn holds_settings(path: &Path) -> bool {
    let mut names = path.iter().rev().map(|name| name.to_string_lossy().to_ascii_lowercase());
    let last = names.next().unwrap_or_default();
    last == SETTINGS_FOLDER
        || last == SERVERS_FILE
        || (SETTINGS_FILES.contains(&last.as_str())
            && names.next().as_deref() == Some(SETTINGS_FOLDER))
}

/// Git runs programs named in these files.
fn steers_git(spot: &Spot) -> bool {
    let names: Vec<String> =
        spot.real.iter().map(|name| name.to_string_lossy().to_ascii_lowercase()).collect();
    let git = names.iter().position(|name| name == ".git");
    git.is_some_and(|at| {
        names.get(at + 1..).is_some_and(|below| {
            below.is_empty()
                || below.iter().any(|name| name == "hooks" || name.starts_with("config"))
        })
    })
}

fn about_path(used: &PathUse<'_>) -> About {
    About::Path { access: used.access, path: used.spot.real.to_string_lossy().into_owned() }
}

/// A part that a rule decides.
fn decided(about: About, rule: &Rule) -> Part {
    let remedy = match rule.effect {
        RuleEffect::Allow => Remedy::None,
        RuleEffect::Ask | RuleEffect::Deny => Remedy::ChangeRule { origin: rule.origin.clone() },
    };
    let reason = Reason::Rule {
        effect: rule.effect,
        rule: rule.written.clone(),
        origin: rule.origin.clone(),
    };
    Part { about, effect: rule.effect, reason, remedy }
}

fn protected(about: About) -> Part {
    Part {
        about,
        effect: RuleEffect::Ask,
        reason: Reason::BuiltIn { text: "this file decides what is allowed".to_owned() },
        remedy: Remedy::Nothing { text: "it is asked each time, in every mode".to_owned() },
    }
}

fn not_understood(about: About, text: String) -> Part {
    Part {
        about,
        effect: RuleEffect::Ask,
        reason: Reason::NotUnderstood { text },
        remedy: Remedy::Nothing { text: "it must be asked for in plainer words".to_owned() },
    }
}
