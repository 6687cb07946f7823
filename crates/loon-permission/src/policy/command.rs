//! Decisions on shell lines.

use loon_api::{Mode, PathAccess, RuleEffect};

use super::{About, Call, Part, PathUse, Reason, Remedy, decided, not_understood};
use crate::known::{is_harmless_variable, read_only_operands};
use crate::line::{Line, Observed, Touch};
use crate::rules::{Match, Rule, SHELL_TOOL};
use crate::shell::is_plain_variable;
use crate::{always, git};

/// What a command itself comes to, before the files it names are looked at.
struct Verdict {
    part: Part,
    /// Nothing but the mode allows it, because it only looks.
    only_looks: bool,
}

impl Call<'_> {
    /// Adds the parts of a line.
    pub(super) fn line_parts(&self, line: Line, parts: &mut Vec<Part>) {
        parts.extend(self.shell_part());
        let before = parts.len();
        for observed in &line.commands {
            let only_looks = self.command_parts(observed, parts);
            for touch in &observed.touches {
                self.touch_parts(touch, observed, only_looks, parts);
            }
        }
        for doubt in line.doubts {
            let about = self.about_tool();
            parts.push(self.hiding(not_understood(about, doubt)));
        }
        if parts.len() == before {
            let reason = Reason::Mode { mode: self.request.mode, text: "nothing runs".to_owned() };
            let about = self.about_tool();
            parts.push(Part { about, effect: RuleEffect::Allow, reason, remedy: Remedy::None });
        }
    }

    /// A strict rule about the shell as a whole holds for every tool that starts commands.
    fn shell_part(&self) -> Option<Part> {
        let whole_shell = |rule: &Rule| rule.is_whole_tool() && rule.written.tool == SHELL_TOOL;
        let rule = self.strictest(|rule| rule.effect > RuleEffect::Allow && whole_shell(rule))?;
        (self.request.tool != SHELL_TOOL).then(|| decided(self.about_tool(), rule))
    }

    /// In bypass mode what is not understood is allowed too, unless it could hide what a strict
    /// rule speaks of.
    fn hiding(&self, part: Part) -> Part {
        let tool = self.request.tool;
        let guarded = || self.policy.rules.iter().any(|rule| rule.could_be_hidden(tool));
        if self.request.mode != Mode::Bypass || guarded() {
            return part;
        }
        Part { effect: RuleEffect::Allow, remedy: Remedy::None, ..part }
    }

    /// Whether only the mode allows the command.
    fn command_parts(&self, observed: &Observed, parts: &mut Vec<Part>) -> bool {
        let command = &observed.command;
        let about = About::Command { text: command.source.clone() };
        if command.words.is_empty() {
            parts.extend(self.assignment_part(observed, about));
            return false;
        }
        if let Some(part) = self.strict_part(observed, &about) {
            parts.push(part);
            return false;
        }
        if observed.inner {
            return false;
        }
        let verdict = self.verdict(observed, about);
        parts.push(verdict.part);
        verdict.only_looks
    }

    /// Assignments and redirects that stand alone.
    fn assignment_part(&self, observed: &Observed, about: About) -> Option<Part> {
        let assignments = &observed.command.assignments;
        let telling = assignments
            .iter()
            .find(|a| !is_plain_variable(&a.name) && !is_harmless_variable(&a.name));
        let Some(telling) = telling else {
            let text = "it sets a variable of the line".to_owned();
            let reason = Reason::Mode { mode: self.request.mode, text };
            let allowed = Part { about, effect: RuleEffect::Allow, reason, remedy: Remedy::None };
            return (!assignments.is_empty()).then_some(allowed);
        };
        if let Some(rule) = self.wide_allow() {
            return Some(decided(about, rule));
        }
        let text = format!("`{}` may change which programs run", telling.name);
        let remedy = Remedy::Nothing { text: "no command rule covers a variable".to_owned() };
        Some(self.by_mode(about, self.request.mode == Mode::Bypass, &text, remedy))
    }

    /// The part as a deny or ask rule decides it.
    fn strict_part(&self, observed: &Observed, about: &About) -> Option<Part> {
        let layers = &observed.seen.layers;
        let tool = self.request.tool;
        let strict = |rule: &Rule| rule.effect > RuleEffect::Allow && rule.names_for_command(tool);
        let meets = |rule: &Rule, wanted| strict(rule) && rule.meets_command(layers) == wanted;
        if let Some(rule) = self.strictest(|rule| meets(rule, Match::Yes)) {
            return Some(decided(about.clone(), rule));
        }
        let rule = self.strictest(|rule| meets(rule, Match::Perhaps))?;
        let prefix = rule.written.command_prefix.clone().unwrap_or_default();
        let text = format!("only when it runs is it known whether this is `{prefix}`");
        Some(not_understood(about.clone(), text))
    }

    /// What allow rules and the mode say.
    fn verdict(&self, observed: &Observed, about: About) -> Verdict {
        let command = &observed.command;
        let tool = self.request.tool;
        let telling = command.assignments.iter().find(|a| !is_harmless_variable(&a.name));
        let covers = |rule: &Rule| {
            rule.effect == RuleEffect::Allow
                && rule.names_for_command(tool)
                && telling.is_none()
                && observed.seen.layers.iter().all(|layer| !git::is_twisted(layer))
                && rule.covers_command(&command.words, observed.seen.reach)
        };
        if let Some(rule) = self.strictest(covers).or_else(|| self.wide_allow()) {
            return Verdict { part: decided(about, rule), only_looks: false };
        }
        if self.request.mode == Mode::Bypass {
            let part = self.by_mode(about, true, "everything is allowed", Remedy::None);
            return Verdict { part, only_looks: false };
        }
        if let Some(telling) = telling {
            let text = format!("`{}` may change which programs run", telling.name);
            let remedy = Remedy::Nothing { text: "no command rule covers a variable".to_owned() };
            return Verdict { part: self.by_mode(about, false, &text, remedy), only_looks: false };
        }
        if read_only_operands(&command.words).is_some() {
            let part = self.by_mode(about, true, "it only looks", Remedy::None);
            return Verdict { part, only_looks: true };
        }
        let remedy = match always::for_command(&command.words, &observed.seen) {
            Some(rule) => Remedy::Allow { rule },
            None => Remedy::Nothing { text: "no rule of the right width covers it".to_owned() },
        };
        Verdict {
            part: self.by_mode(about, false, "it starts a program", remedy),
            only_looks: false,
        }
    }

    /// Files that the line names. A redirect is a part of its own; an operand becomes one only where
    /// it is stricter than the command, or where only the mode allows the command.
    fn touch_parts(
        &self,
        touch: &Touch,
        observed: &Observed,
        only_looks: bool,
        parts: &mut Vec<Part>,
    ) {
        let own = touch.redirect && !observed.inner;
        if touch.spots.is_empty() {
            let tool = self.request.tool;
            let guarded =
                || self.policy.rules.iter().any(|rule| rule.guards_paths(tool, touch.access));
            if touch.redirect || guarded() {
                let about = About::Path { access: touch.access, path: touch.shown.clone() };
                let text = "which file this is, is known only when it runs".to_owned();
                parts.push(self.hiding(not_understood(about, text)));
            }
            return;
        }
        for spot in &touch.spots {
            let used = PathUse { access: touch.access, spot, deep: touch.deep, by_shell: true };
            let part = self.path_part(&used);
            let by_rule = !matches!(part.reason, Reason::Mode { .. });
            let looks_outside = only_looks && touch.access == PathAccess::Read;
            let strict = part.effect > RuleEffect::Allow && (by_rule || looks_outside);
            if own || strict {
                parts.push(part);
            }
        }
    }
}
