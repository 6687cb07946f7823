//! `loon exec`.

use std::io::Read as _;
use std::path::Path;

use loon_core::Runtime;
use serde_json::Value;

use crate::args::{ExecArgs, InputFormat};
use crate::failure::Failure;
use crate::headless::{self, Format, Task};
use crate::wiring::{RunOptions, Setup};

/// Longest prompt taken from standard input, in bytes.
const MAX_PROMPT: u64 = 16 * 1024 * 1024;

/// Runs one prompt without a screen.
pub(super) fn run(args: ExecArgs) -> Result<u8, Failure> {
    let format = if args.json { Format::Json } else { Format::Text };
    let commands_from_stdin = args.input == Some(InputFormat::Jsonl);
    let prompt = prompt_of(args.prompt, commands_from_stdin)?;
    let answer_schema = args.output_schema.as_deref().map(read_schema).transpose()?;
    let setup = Setup::load(args.session.cwd.as_deref(), &args.session.overrides)?;
    let choice = setup.choice(&args.session)?;
    let runtime = super::runtime()?;
    let status = runtime.block_on(async {
        let options = RunOptions {
            session: &args.session,
            max_steps: args.max_turns,
            deadline: args.deadline,
            unattended: !commands_from_stdin,
            answer_schema,
        };
        let mut deps = setup.dependencies(options);
        super::ensure_model(&mut deps).await;
        let task =
            Task { prompt, commands_from_stdin, format, last_message: args.output_last_message };
        headless::drive(Runtime::start(deps, choice), task).await
    });
    // A writer stuck on a pipe that nobody reads must not keep the process.
    runtime.shutdown_background();
    status
}

/// The prompt from the argument; from standard input only if there is none.
fn prompt_of(argument: Option<String>, commands: bool) -> Result<Option<String>, Failure> {
    let prompt = match argument {
        Some(text) if text != "-" => text,
        _ if commands => return Ok(None),
        _ => {
            let mut bytes = Vec::new();
            std::io::stdin().lock().take(MAX_PROMPT).read_to_end(&mut bytes).map_err(|error| {
                Failure::usage(format!("Cannot read the prompt from standard input: {error}"))
            })?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    if prompt.trim().is_empty() {
        return Err(Failure::usage("The prompt is empty.").hint("loon exec \"what to do\""));
    }
    Ok(Some(prompt))
}

fn read_schema(path: &Path) -> Result<Value, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("Cannot read {}: {error}", path.display())))?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::usage(format!("{} is no JSON Schema: {error}", path.display())))
}
