//! `loon hooks ...`.

use std::fmt::Write as _;

use loon_api::{HookAction, HookDefinition};
use loon_config::without_login;
use loon_core::SessionIndex;
use loon_core::hooks::{HookAnswer, HookVerdict, Trial, Tried, try_hooks};
use loon_core::index::Fired;
use serde_json::{Map, Value, json};

use crate::args::{HooksCommand, SessionArgs, TestArgs};
use crate::failure::Failure;
use crate::wiring::{RunOptions, Setup, redactor_here};

/// Runs one of them.
pub(super) fn run(command: HooksCommand) -> Result<u8, Failure> {
    match command {
        HooksCommand::List { json } => list(json),
        HooksCommand::Test(args) => test(args),
    }
}

fn list(as_json: bool) -> Result<u8, Failure> {
    let setup = Setup::load(None, &[])?;
    let hooks = &setup.loaded.hooks;
    let index = SessionIndex::at(setup.paths.index_file());
    let fired = index.hooks(&setup.store()).map_err(|error| Failure::from(error.info()))?;
    let redactor = redactor_here();
    let mut text = String::new();
    for hook in hooks {
        // The journals know it by what was recorded.
        let fired = fired.get(&redactor.text(hook.target()));
        if as_json {
            let _ = writeln!(text, "{}", redactor.value(as_value(hook, fired)));
        } else {
            text.push_str(&redactor.text(as_line(hook, fired)));
        }
    }
    if hooks.is_empty() && !as_json {
        text.push_str("There are no hooks here. docs/HOOKS.md shows how to write one.\n");
    }
    let waiting = setup.loaded.untrusted.iter().filter(|ignored| ignored.key.starts_with("hooks."));
    if !as_json {
        for ignored in waiting {
            let _ = writeln!(text, "{ignored}; see `loon trust`.");
        }
    }
    super::print(&text)
}

fn action(hook: &HookDefinition) -> String {
    match &hook.action {
        HookAction::Command(line) => line.clone(),
        HookAction::Url(url) => without_login(url),
    }
}

fn as_line(hook: &HookDefinition, fired: Option<&Fired>) -> String {
    let about =
        if hook.event.is_about_tool() { format!(" on {}", hook.matcher) } else { String::new() };
    let mut text = format!("{}{about}: {}\n", hook.event, action(hook));
    let _ = writeln!(text, "    {}, at most {} s", hook.origin, hook.timeout.as_secs());
    let _ = match fired {
        None => writeln!(text, "    never fired"),
        Some(fired) => {
            let times = if fired.count == 1 { "once" } else { "times" };
            let count = if fired.count == 1 { String::new() } else { format!("{} ", fired.count) };
            let result = fired.result.as_deref().unwrap_or("its end is not known");
            writeln!(text, "    fired {count}{times}, last at {}: {result}", fired.at)
        }
    };
    text
}

fn as_value(hook: &HookDefinition, fired: Option<&Fired>) -> Value {
    let (kind, what) = match &hook.action {
        HookAction::Command(_) => ("command", action(hook)),
        HookAction::Url(_) => ("url", action(hook)),
    };
    json!({
        "event": hook.event,
        "matcher": hook.matcher.to_string(),
        kind: what,
        "timeout_secs": hook.timeout.as_secs(),
        "origin": hook.origin,
        "fired": fired.map_or(0, |fired| fired.count),
        "last_at": fired.map(|fired| &fired.at),
        "last_result": fired.and_then(|fired| fired.result.as_ref()),
    })
}

fn test(args: TestArgs) -> Result<u8, Failure> {
    let setup = Setup::load(None, &[])?;
    let input = match &args.input {
        None => Map::new(),
        Some(text) => serde_json::from_str(text)
            .map_err(|error| Failure::usage(format!("--input is no JSON object: {error}")))?,
    };
    let trial = Trial { event: args.event, tool: args.tool, input };
    let runtime = super::runtime()?;
    let session = SessionArgs::default();
    let (input, tried) = runtime
        .block_on(async {
            let (deps, _) = setup.dependencies(RunOptions::attended(&session));
            try_hooks(&deps, trial).await
        })
        .map_err(Failure::from)?;
    if tried.is_empty() {
        return super::print(
            "No hook fires for that. `loon hooks list` shows the hooks there are.\n",
        );
    }
    let mut text = format!("Each reads:\n    {input}\n");
    for Tried { hook, answer } in &tried {
        let _ = writeln!(text, "\n{}: {}\n    {}", hook.event, action(hook), hook.origin);
        text.push_str(&said(hook, answer.as_ref().map_err(|error| error.message.as_str())));
    }
    let failed = tried.iter().any(|tried| tried.answer.is_err());
    let printed = super::print(&redactor_here().text(text))?;
    Ok(if failed && printed == 0 { 1 } else { printed })
}

/// What was understood, a line each.
fn said(hook: &HookDefinition, answer: Result<&HookAnswer, &str>) -> String {
    let mut text = String::new();
    let _ = match answer {
        Err(error) if hook.event.fails_closed() => {
            writeln!(text, "    failed, and so blocks: {error}")
        }
        Err(error) => writeln!(text, "    failed: {error}"),
        Ok(answer) => {
            let _ = match &answer.verdict {
                HookVerdict::Go => writeln!(text, "    nothing against it"),
                HookVerdict::Ask { reason } => writeln!(text, "    asks a person: {reason}"),
                HookVerdict::Block { reason } => writeln!(text, "    blocks: {reason}"),
            };
            match &answer.context {
                Some(context) => {
                    writeln!(text, "    says: {}", context.replace('\n', "\n          "))
                }
                None => Ok(()),
            }
        }
    };
    text
}
