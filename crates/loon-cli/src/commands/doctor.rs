//! `loon doctor`: says whether everything needed is in place, and what to do if not.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use loon_config::ProviderKind;

use crate::failure::Failure;
use crate::wiring::{SettingsModels, Setup};

struct Report {
    text: String,
    problems: u32,
}

impl Report {
    fn good(&mut self, what: &str, detail: &str) {
        let _ = writeln!(self.text, "ok    {what:<12} {detail}");
    }

    fn note(&mut self, what: &str, detail: &str) {
        let _ = writeln!(self.text, "note  {what:<12} {detail}");
    }

    fn bad(&mut self, what: &str, detail: &str, fix: &str) {
        self.problems += 1;
        let _ = writeln!(self.text, "FAIL  {what:<12} {detail}");
        let _ = writeln!(self.text, "      {:<12} {fix}", "");
    }
}

/// Prints one line per check. Exit status 1 if something needed is missing.
pub(super) fn run() -> Result<u8, Failure> {
    let mut report = Report { text: String::new(), problems: 0 };
    report.good("loon", env!("CARGO_PKG_VERSION"));
    programs(&mut report);
    let setup = Setup::load(None, &[])?;
    data_folder(&mut report, &setup.paths.data);
    settings(&mut report, &setup);
    models(&mut report, &setup)?;
    let verdict = match report.problems {
        0 => "Everything needed is in place.".to_owned(),
        1 => "One thing needs attention.".to_owned(),
        many => format!("{many} things need attention."),
    };
    super::print(&format!("{}{verdict}\n", report.text))?;
    Ok(u8::from(report.problems > 0))
}

fn programs(report: &mut Report) {
    for (name, what_needs) in [("bash", "the bash tool"), ("git", "the demo")] {
        match find_program(name) {
            Some(path) => report.good(name, &path.display().to_string()),
            None => {
                report.bad(
                    name,
                    "is not on PATH",
                    &format!("Install {name}; {what_needs} needs it."),
                );
            }
        }
    }
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| {
        file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    })
}

fn data_folder(report: &mut Report, data: &Path) {
    let probe = std::fs::create_dir_all(data)
        .and_then(|()| tempfile::NamedTempFile::new_in(data).map(|_| ()));
    match probe {
        Ok(()) => report.good("data folder", &data.display().to_string()),
        Err(error) => report.bad(
            "data folder",
            &format!("{}: {error}", data.display()),
            "Sessions are kept there: make it writable, or set LOON_DATA_DIR.",
        ),
    }
}

fn settings(report: &mut Report, setup: &Setup) {
    let layers = [&setup.files.user, &setup.files.project, &setup.files.local];
    let files: Vec<String> = layers
        .into_iter()
        .flatten()
        .filter(|file| file.is_file())
        .map(|file| file.display().to_string())
        .collect();
    if files.is_empty() {
        report.note("settings", "no settings file; the built-in values hold");
    } else {
        report.good("settings", &files.join(", "));
    }
    for remark in setup.remarks() {
        report.note("settings", &remark);
    }
}

fn models(report: &mut Report, setup: &Setup) -> Result<(), Failure> {
    let settings = &setup.loaded.settings;
    for (name, provider) in &settings.providers {
        let missing_key = provider.api_key.is_none()
            && provider.api_key_env.as_ref().is_some_and(|name| std::env::var_os(name).is_none());
        let place = match provider.kind {
            ProviderKind::Script => provider.script.clone().unwrap_or_default(),
            _ => loon_config::without_login(&provider.base_url.clone().unwrap_or_default()),
        };
        if missing_key {
            let variable = provider.api_key_env.clone().unwrap_or_default();
            report.note(
                name,
                &format!("{place}; {variable} is not set, which is fine for a local server"),
            );
        } else {
            report.good(name, &place);
        }
    }
    let models = SettingsModels::new(settings, &setup.root);
    let Some(name) = &settings.session.model else {
        let found = super::runtime()?.block_on(loon_model::detect_local());
        match found.first() {
            Some(server) => report.note(
                "model",
                &format!("none is set; a local server answers at {}", server.base_url),
            ),
            None => report.bad(
                "model",
                "none is set up",
                "Add a [providers.NAME] section with kind and base_url and set session.model; \
                 README.md shows how.",
            ),
        }
        return Ok(());
    };
    match loon_core::Models::open(&models, name) {
        Ok(_) => report.good("model", name),
        Err(error) => report.bad("model", &error.message, &error.hints.join(" ")),
    }
    Ok(())
}
