//! The checkout: where it lies, which files belong to it, what cargo knows of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use cargo_metadata::{Metadata, MetadataCommand};

/// The checkout.
pub(crate) struct Tree {
    root: PathBuf,
    /// Paths of all files that are tracked or would be, with `/`, sorted.
    pub(crate) files: Vec<String>,
}

impl Tree {
    /// The checkout this program was built in.
    pub(crate) fn here() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("xtask lies in the workspace")?
            .to_owned();
        let files = list(&root)?;
        Ok(Self { root, files })
    }

    /// The absolute path of a file.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.root.join(file)
    }

    /// The text of a file; `None` if its bytes are no text.
    pub(crate) fn text(&self, file: &str) -> Result<Option<String>> {
        let bytes = fs::read(self.path(file)).with_context(|| format!("cannot read {file}"))?;
        Ok(String::from_utf8(bytes).ok())
    }

    /// The members of the workspace and what they ask for.
    pub(crate) fn metadata(&self) -> Result<Metadata> {
        MetadataCommand::new()
            .manifest_path(self.path("Cargo.toml"))
            .no_deps()
            .exec()
            .context("cargo metadata failed")
    }

    /// Every package that is built on this machine, as lines `NAME vVERSION ...|LICENCE`.
    pub(crate) fn dependencies(&self) -> Result<String> {
        let edges = ["--edges", "normal,build,dev"];
        self.cargo(
            &[&["tree", "--workspace"], &edges[..], &["--prefix", "none", "--format", "{p}|{l}"]]
                .concat(),
        )
    }

    /// Builds `loon`, with the features the whole workspace asks for.
    pub(crate) fn build(&self) -> Result<()> {
        self.cargo(&["build", "--quiet", "--workspace", "--bin", "loon"]).map(drop)
    }

    /// Where [`Self::build`] and the tests leave `loon`.
    pub(crate) fn binary(&self) -> PathBuf {
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| self.path("target"), PathBuf::from);
        target.join("debug/loon")
    }

    /// What a program prints, on lines of at most 100 columns.
    pub(crate) fn ask(&self, program: &Path, words: &[String]) -> Result<String> {
        run(command(&program.to_string_lossy())
            .args(words)
            .env("COLUMNS", "100")
            .current_dir(&self.root))
    }

    /// The same with a home of its own, so that no settings of a person come in.
    pub(crate) fn ask_at_home(program: &Path, words: &[String], home: &Path) -> Result<String> {
        let names = ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "LOON_DATA_DIR"];
        let mut asked = command(&program.to_string_lossy());
        names.iter().fold(asked.args(words).current_dir(home), |asked, name| asked.env(name, home));
        run(&mut asked)
    }

    fn cargo(&self, words: &[&str]) -> Result<String> {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        run(command(&cargo).args(words).current_dir(&self.root))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a chore asks git and cargo, and nothing of the product runs here"
)]
fn command(program: &str) -> Command {
    Command::new(program)
}

/// What a command prints, if it ends well.
fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{command:?} printed no text"))
}

fn list(root: &Path) -> Result<Vec<String>> {
    let arguments =
        ["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let listing = run(command("git").args(arguments).current_dir(root))?;
    let mut files: Vec<String> = listing
        .split('\0')
        .filter(|name| !name.is_empty() && root.join(name).is_file())
        .map(str::to_owned)
        .collect();
    files.sort_unstable();
    files.dedup();
    Ok(files)
}
