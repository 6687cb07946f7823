//! `loon worker`.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::args::WorkerArgs;
use crate::failure::{Failure, say_error};
use crate::signals::{Asked, Signals};
use crate::worker::{Prompts, Token, fire, schedules_of_settings, serve, serve_parent};

/// Serves until it is told to end.
pub(super) fn run(args: &WorkerArgs) -> Result<u8, Failure> {
    let runtime = super::runtime()?;
    let prompts = Prompts::new(Some(args.token_env.clone()))?;
    let status = if args.stdio {
        runtime.block_on(serve_parent(prompts))
    } else {
        runtime.block_on(run_until_told(args, Arc::new(prompts)))
    };
    crate::commands::leave(runtime);
    status
}

async fn run_until_told(args: &WorkerArgs, prompts: Arc<Prompts>) -> Result<u8, Failure> {
    let schedules = if args.schedules { schedules_of_settings()? } else { Vec::new() };
    let firing = fire(Arc::clone(&prompts), schedules, |fired| {
        if let Err(failure) = super::print(&fired.line()) {
            say_error(failure.error());
        }
    });
    let serving = async {
        match args.listen {
            Some(address) => listen(address, args, Arc::clone(&prompts)).await,
            None => {
                let asked = Signals::listen()?.next().await;
                prompts.terminate().await;
                Ok(match asked {
                    Asked::Interrupt => 130,
                    Asked::Terminate => 143,
                })
            }
        }
    };
    tokio::select! {
        status = serving => status,
        () = firing => Ok(0),
    }
}

async fn listen(
    address: SocketAddr,
    args: &WorkerArgs,
    prompts: Arc<Prompts>,
) -> Result<u8, Failure> {
    let token = Token::from_variable(&args.token_env)?;
    if token.is_none() && !address.ip().is_loopback() {
        let message = format!("Without a token, {address} would run anybody's prompts.");
        return Err(Failure::usage(message).hint(format!(
            "Set {} to a token of 16 or more characters, or listen on 127.0.0.1.",
            args.token_env
        )));
    }
    let told = |address| super::print(&format!("listening on http://{address}\n")).map(drop);
    serve(address, token, prompts, told).await
}
