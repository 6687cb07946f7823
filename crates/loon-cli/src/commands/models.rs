//! `loon models ...`.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use loon_core::{Runtime, SessionChoice};

use crate::args::{ModelsCommand, SessionArgs};
use crate::failure::Failure;
use crate::safe::plain;
use crate::wiring::{RunOptions, SettingsModels, Setup};

/// Runs one of them.
pub(super) fn run(command: &ModelsCommand) -> Result<u8, Failure> {
    let setup = Setup::load(None, &[])?;
    match command {
        ModelsCommand::List { offline } => list(&setup, *offline),
        ModelsCommand::Test { model } => test(&setup, model.clone()),
    }
}

fn list(setup: &Setup, offline: bool) -> Result<u8, Failure> {
    let models = SettingsModels::new(&setup.loaded.settings, &setup.root);
    let prices = models.prices();
    let price = |name: &str| match prices.find(name) {
        Some(known) => format!("{} for a million tokens ({})", known.price, known.source),
        None => "price unknown".to_owned(),
    };
    // Names and errors of a server are its own words.
    let redactor = crate::wiring::redactor_here();
    let own_words = |text: String| plain(&redactor.text(text)).replace(['\n', '\t'], " ");
    let mut text = String::new();
    for name in models.single_names() {
        let _ = writeln!(text, "{name}  (settings)  {}", price(&name));
    }
    for (name, resolved) in models.combos() {
        let _ = writeln!(text, "{name}  (combo)");
        for (member, fit) in resolved.members {
            let _ = match fit {
                Ok(_) => writeln!(text, "  {member}"),
                Err(reason) => writeln!(text, "  {member}  left out: {reason}"),
            };
        }
    }
    if !offline {
        let offered = super::runtime()?.block_on(models.ask_servers());
        for (provider, answer) in offered {
            match answer {
                Ok(remote) => {
                    for model in remote {
                        let price = price(&format!("{provider}/{}", model.id));
                        let _ =
                            writeln!(text, "{provider}/{}  (server)  {price}", own_words(model.id));
                    }
                }
                Err(error) => {
                    let _ = writeln!(text, "{provider}: {}", own_words(error.message));
                }
            }
        }
    }
    if text.is_empty() {
        text.push_str("No models are set up. README.md shows how to connect one.\n");
    }
    super::print(&text)
}

/// Sends one short prompt through the whole way: settings, journal, gate, wire.
fn test(setup: &Setup, model: Option<String>) -> Result<u8, Failure> {
    let args = SessionArgs { model, ..SessionArgs::default() };
    let runtime = super::runtime()?;
    runtime.block_on(async {
        let (mut deps, _) = setup.dependencies(RunOptions::attended(&args));
        super::ensure_model(&mut deps).await;
        deps.options.unattended = true;
        deps.tools = Arc::new(|_| Ok(Vec::new()));
        deps.store = Arc::new(loon_kernel::MemoryStore::default());
        let name = deps.options.model.value.clone().unwrap_or_else(|| "no model".to_owned());
        let begun = Instant::now();
        let mut session = Runtime::start(deps, SessionChoice::New);
        let text = "Answer with the single word: ready".to_owned();
        let _ = session.commands.send(loon_api::Command::Prompt { text }).await;
        let mut first_text = None;
        while let Some(event) = session.events.recv().await {
            match &event.event {
                loon_api::AgentEvent::ItemDelta(_) => {
                    first_text.get_or_insert_with(|| begun.elapsed());
                }
                loon_api::AgentEvent::TurnFinished(_) => {
                    let _ = session.commands.send(loon_api::Command::Close).await;
                }
                loon_api::AgentEvent::StreamFinished(finished) => {
                    if let Some(error) = &finished.error {
                        return Err(Failure::from(error.clone()));
                    }
                    let answer = finished.message.clone().unwrap_or_default();
                    let first = first_text.unwrap_or_default().as_millis();
                    let whole = begun.elapsed().as_millis();
                    let tokens = finished.usage.output_tokens;
                    let tokens = tokens.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
                    return super::print(&format!(
                        "{name} answers: {}\nfirst words after {first} ms, whole after {whole} ms, \
                         {tokens} output tokens\n",
                        answer.trim(),
                    ));
                }
                _ => {}
            }
        }
        Err(Failure::other("The test ended without an answer."))
    })
}
