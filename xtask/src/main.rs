//! Project chores: checks of the house, generated files, benchmarks.

mod bench;
mod generate;
mod tidy;
mod tree;

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

fn main() -> Result<()> {
    let text = match Arguments::parse().chore {
        Chore::Tidy => tidy::report(&Tree::here()?)?,
        Chore::Schema => generate::write(&Tree::here()?, &generate::schemas()?)?,
        Chore::Reference => generate::write(&Tree::here()?, &generate::pages())?,
        Chore::Bench(options) => bench::run(&options)?,
        Chore::Measure { words } => bench::measure_here(&words)?,
    };
    say(&text);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the one place where chores speak")]
fn say(text: &str) {
    println!("{text}");
}
