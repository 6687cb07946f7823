//! Project chores: checks of the house, generated files, benchmarks.

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
}

fn main() -> Result<()> {
    let tree = Tree::here()?;
    match Arguments::parse().chore {
        Chore::Tidy => say(&tidy::report(&tree)?),
        Chore::Schema => say(&generate::write(&tree, &generate::schemas()?)?),
        Chore::Reference => say(&generate::write(&tree, &generate::pages())?),
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the one place where chores speak")]
fn say(text: &str) {
    println!("{text}");
}
