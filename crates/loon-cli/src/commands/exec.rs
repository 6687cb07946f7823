//! `loon exec`.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use loon_api::Command;
use loon_core::{Dependencies, Runtime, SessionChoice, opening_command};
use serde_json::Value;

use crate::args::{ExecArgs, InputFormat};
use crate::failure::Failure;
use crate::headless::{self, Format, Task};
use crate::wiring::{Follower, RunOptions, Setup};
use crate::worker::{self, Elsewhere, PromptInput};

/// Longest prompt taken from standard input, in bytes.
const MAX_PROMPT: u64 = 16 * 1024 * 1024;

/// Runs one prompt without a screen.
pub(super) fn run(args: ExecArgs) -> Result<u8, Failure> {
    let json = args.json;
    let runtime = super::runtime()?;
    if let Some(name) = &args.worker {
        let prepared = prepare_elsewhere(name, &args);
        let status = match prepared {
            Ok((elsewhere, task)) => {
                runtime.block_on(async { headless::drive(elsewhere.start(), task).await })
            }
            Err(failure) => {
                if json {
                    headless::print_end(&failure)?;
                }
                Err(failure)
            }
        };
        crate::commands::leave(runtime);
        return status;
    }
    let prepared = match runtime.block_on(prepare(args)) {
        Ok(prepared) => prepared,
        Err(failure) => {
            if json {
                headless::print_end(&failure)?;
            }
            return Err(failure);
        }
    };
    let status = runtime.block_on(async {
        let _following = prepared.follower.start(|_| {});
        headless::drive(Runtime::start(prepared.deps, prepared.choice), prepared.task).await
    });
    crate::commands::leave(runtime);
    status
}

/// A run that a worker will do.
fn prepare_elsewhere(name: &str, args: &ExecArgs) -> Result<(Elsewhere, Task), Failure> {
    let setup = Setup::load(args.session.cwd.as_deref(), &[])?;
    let dispatcher = worker::dispatcher(name, &setup)?;
    let schema = args.output_schema.as_deref().map(read_schema).transpose()?;
    let prompt = prompt_of(args.prompt.clone(), false)?;
    let input = PromptInput {
        prompt: String::new(),
        cwd: setup.root.clone(),
        model: args.session.model.clone(),
        mode: args.session.mode.map(Into::into),
        max_turns: args.max_turns,
        output_schema: schema,
    };
    let task = Task {
        opening: prompt.map(|text| Command::Prompt { text }),
        commands_from_stdin: false,
        format: if args.json { Format::Json } else { Format::Text },
        last_message: args.output_last_message.clone(),
    };
    let store = Arc::new(setup.store());
    Ok((Elsewhere { dispatcher, input, store, deadline: args.deadline }, task))
}

/// A run that can begin.
struct Prepared {
    deps: Dependencies,
    follower: Follower,
    choice: SessionChoice,
    task: Task,
}

async fn prepare(args: ExecArgs) -> Result<Prepared, Failure> {
    let format = if args.json { Format::Json } else { Format::Text };
    let commands_from_stdin = args.input == Some(InputFormat::Jsonl);
    let (setup, choice) = Setup::for_session(&args.session)?;
    let answer_schema = args.output_schema.as_deref().map(read_schema).transpose()?;
    let prompt = prompt_of(args.prompt, commands_from_stdin)?;
    let (mut deps, follower) = setup.dependencies(RunOptions {
        session: &args.session,
        max_steps: args.max_turns,
        deadline: args.deadline,
        unattended: !commands_from_stdin,
        answer_schema,
    });
    super::ensure_model(&mut deps).await;
    if choice == SessionChoice::New || deps.options.model.explicit {
        // A misspelt setting is often the reason, and no session begins that would tell of it.
        check_model(&deps)
            .map_err(|failure| setup.remarks().into_iter().fold(failure, Failure::hint))?;
    }
    let options = &deps.options;
    let opening = prompt.map(|text| opening_command(&options.cwd, &options.definitions, text));
    let task =
        Task { opening, commands_from_stdin, format, last_message: args.output_last_message };
    Ok(Prepared { deps, follower, choice, task })
}

/// A model that is not there is a matter of settings, and told before a session begins.
pub(crate) fn check_model(deps: &Dependencies) -> Result<(), Failure> {
    let Some(name) = &deps.options.model.value else {
        return Err(Failure::usage("No model is set up.")
            .hint("Set session.model and a [providers.NAME] section, or run `loon doctor`."));
    };
    deps.models.open(name).map(drop).map_err(Failure::from)
}

/// The prompt from the argument; from standard input only if there is none.
fn prompt_of(argument: Option<String>, commands: bool) -> Result<Option<String>, Failure> {
    let prompt = match argument {
        Some(text) if text != "-" => text,
        _ if commands => return Ok(None),
        _ => {
            let mut bytes = Vec::new();
            std::io::stdin().lock().take(MAX_PROMPT + 1).read_to_end(&mut bytes).map_err(
                |error| {
                    Failure::usage(format!("Cannot read the prompt from standard input: {error}"))
                },
            )?;
            if bytes.len() as u64 > MAX_PROMPT {
                let message = format!("The prompt is longer than {MAX_PROMPT} bytes.");
                return Err(Failure::usage(message).hint("Name a file in the prompt instead."));
            }
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    if prompt.trim().is_empty() {
        return Err(
            Failure::nothing_to_run("The prompt is empty.").hint("loon exec \"what to do\"")
        );
    }
    Ok(Some(prompt))
}

fn read_schema(path: &Path) -> Result<Value, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("Cannot read {}: {error}", path.display())))?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::usage(format!("{} is no JSON Schema: {error}", path.display())))
}
