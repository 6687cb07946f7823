//! `loon worker`.

use crate::args::WorkerArgs;
use crate::failure::Failure;
use crate::worker::{Prompts, Token, serve, serve_parent};

/// Serves until it is told to end.
pub(super) fn run(args: &WorkerArgs) -> Result<u8, Failure> {
    let runtime = super::runtime()?;
    let prompts = Prompts::new(Some(args.token_env.clone()))?;
    let status = match args.listen {
        Some(address) => {
            let token = Token::from_variable(&args.token_env)?;
            if token.is_none() && !address.ip().is_loopback() {
                let message = format!("Without a token, {address} would run anybody's prompts.");
                return Err(Failure::usage(message).hint(format!(
                    "Set {} to a token of 16 or more characters, or listen on 127.0.0.1.",
                    args.token_env
                )));
            }
            runtime.block_on(serve(address, token, prompts, |address| {
                super::print(&format!("listening on http://{address}\n")).map(drop)
            }))
        }
        None => runtime.block_on(serve_parent(prompts)),
    };
    runtime.shutdown_background();
    status
}
