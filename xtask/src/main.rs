//! Project chores: checks of the house, generated files, benchmarks.

mod bench;
mod generate;
mod tidy;
mod tree;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::tree::Tree;

/// Project chores.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Check the house: floors, file sizes, names, licences, fresh generated files.
    Tidy,
    /// Write the JSON Schemas under docs/reference.
    Schema,
    /// Write the generated pages under docs/reference.
    Reference,
    /// Write completion scripts of the built command for every shell to target/completions.
    Completions,
    /// Measure the command against a model server on loopback, on its own or beside others.
    Bench(bench::Options),
    /// Run a command and report what it cost, as JSON. The benchmark starts itself this way.
    #[command(hide = true)]
    Measure {
        /// The command and its arguments.
        #[arg(last = true)]
        words: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().chore) {
        Ok(text) => {
            say(&text);
            ExitCode::SUCCESS
        }
        Err(error) => {
            complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(chore: Chore) -> Result<String> {
    match chore {
        Chore::Tidy => tidy::report(&Tree::here()?),
        Chore::Schema => generate::write(&Tree::here()?, &generate::schemas()?),
        Chore::Reference => {
            let tree = Tree::here()?;
            generate::write(&tree, &generate::pages(&tree)?)
        }
        Chore::Completions => generate::completions(&Tree::here()?),
        Chore::Bench(options) => bench::run(&options),
        Chore::Measure { words } => bench::measure_here(&words),
    }
}

#[expect(clippy::print_stdout, reason = "the one place where chores speak")]
fn say(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "the one place where chores complain")]
fn complain(text: &str) {
    eprintln!("{text}");
}
