//! Decisions in words, part by part.

use std::fmt;

use loon_api::{Mode, PathAccess, PermissionRule, RuleEffect, RuleOrigin};
use serde::Serialize;

use crate::policy::{About, Judgement, Reason, Remedy};

/// A judgement in words. Its text form is what `loon permissions explain` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// What happens to the call as a whole.
    pub decision: RuleEffect,
    /// Its parts.
    pub parts: Vec<ExplainedPart>,
}

/// One part in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExplainedPart {
    /// What it is.
    pub what: String,
    /// What happens to it.
    pub decision: RuleEffect,
    /// Which rule decided it, or what else did.
    pub because: String,
    /// Where that rule was written: the file and, if known, the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// What would change it; empty if it is allowed.
    pub change: String,
}

/// Puts a judgement into words.
pub fn explain(judgement: &Judgement) -> Explanation {
    let parts = judgement.parts.iter().map(|part| ExplainedPart {
        what: part.about.to_string(),
        decision: part.effect,
        because: part.reason.to_string(),
        origin: match &part.reason {
            Reason::Rule { origin, .. } => Some(place(origin)),
            _ => None,
        },
        change: change(&part.remedy, part.effect),
    });
    Explanation { decision: judgement.effect, parts: parts.collect() }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", effect_word(self.decision))?;
        for part in &self.parts {
            let what = part.what.replace('\n', "\n         ");
            writeln!(f, "\n  {:<5}  {what}", effect_word(part.decision))?;
            writeln!(f, "         because  {}", part.because)?;
            if !part.change.is_empty() {
                writeln!(f, "         change   {}", part.change)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { text } => f.write_str(text),
            Self::Path { access: PathAccess::Read, path } => write!(f, "read {path}"),
            Self::Path { access: PathAccess::Write, path } => write!(f, "write {path}"),
            Self::Host { host } => write!(f, "host {host}"),
            Self::Tool { name } => write!(f, "tool {name}"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule { effect, rule, origin } => {
                let (effect, rule) = (effect_word(*effect), rule_words(rule));
                write!(f, "{effect} rule  {rule}  {}", place(origin))
            }
            Self::Mode { mode, text } => {
                write!(f, "no rule speaks of it; mode {}: {text}", mode_word(*mode))
            }
            Self::BuiltIn { text } => write!(f, "built in: {text}"),
            Self::NotUnderstood { text } => write!(f, "not understood: {text}"),
        }
    }
}

/// A rule as it is shown: `bash "git push"`.
pub fn rule_words(rule: &PermissionRule) -> String {
    let mut words = rule.tool.clone();
    for (name, value) in
        [("", &rule.command_prefix), ("path ", &rule.path_prefix), ("host ", &rule.host)]
    {
        if let Some(value) = value {
            words = format!("{words} {name}\"{value}\"");
        }
    }
    words
}

fn place(origin: &RuleOrigin) -> String {
    match origin.line {
        Some(line) => format!("{}:{line}", origin.source),
        None => origin.source.clone(),
    }
}

fn change(remedy: &Remedy, effect: RuleEffect) -> String {
    match remedy {
        Remedy::None => String::new(),
        Remedy::Allow { rule } => format!("add  allow  {}", rule_words(rule)),
        Remedy::ChangeRule { origin } if effect == RuleEffect::Deny => {
            format!("nothing: denied by the rule in {}", place(origin))
        }
        Remedy::ChangeRule { origin } => {
            format!("only that rule in {}: an allow rule does not outweigh it", place(origin))
        }
        Remedy::Nothing { text } => format!("nothing: {text}"),
    }
}

fn effect_word(effect: RuleEffect) -> &'static str {
    match effect {
        RuleEffect::Allow => "allow",
        RuleEffect::Ask => "ask",
        RuleEffect::Deny => "deny",
    }
}

fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Default => "default",
        Mode::Auto => "auto",
        Mode::Bypass => "bypass",
        Mode::Plan => "plan",
    }
}
