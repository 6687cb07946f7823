//! Where the built `loon` is.
//!
//! A test of one package cannot depend on the binary of another, so the first test that wants it
//! asks Cargo for it, with the profile and the features the test itself was built with: those of the
//! whole workspace. Cargo holds no lock while
//! tests run, and has nothing to do when the binary is fresh. `LOON_BIN` names a binary to take
//! instead.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

/// Path of the binary, built on first use.
pub fn loon_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| std::env::var_os("LOON_BIN").map_or_else(build, PathBuf::from))
}

#[expect(clippy::disallowed_methods, reason = "Cargo builds what the tests start")]
fn build() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["build", "--workspace", "--bin", "loon", "--profile", profile()])
        .args(["--message-format", "json-render-diagnostics"])
        .output()
        .expect("Cargo");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "loon does not build:\n{errors}");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "loon")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .expect("Cargo names the binary it built")
}

/// The profile of the running test, read off the folder it lies in.
fn profile() -> &'static str {
    let here = std::env::current_exe().expect("the path of the test");
    let folder = here.ancestors().find(|folder| folder.ends_with("deps"));
    match folder.and_then(Path::parent).and_then(Path::file_name).and_then(|name| name.to_str()) {
        Some("release") => "release",
        _ => "dev",
    }
}
