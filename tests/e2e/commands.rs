//! The commands around the work: settings, completions, the doctor, help.

use loon_testkit::{Home, Loon, ModelServer, Wire};
use serde_json::Value;

use crate::scripts::small_repo;

struct Bench {
    home: Home,
    repo: loon_testkit::Repo,
    _server: ModelServer,
}

impl Bench {
    fn new() -> Self {
        let server = ModelServer::queue([]);
        let home = Home::with_server(&server, Wire::Chat);
        Self { home, repo: small_repo(), _server: server }
    }

    fn loon(&self, arguments: &[&str]) -> loon_testkit::Finished {
        Loon::new(&self.home, self.repo.path()).args(arguments.iter().copied()).run()
    }

    /// What a command that ends well prints.
    fn says(&self, arguments: &[&str]) -> String {
        let finished = self.loon(arguments);
        assert_eq!(finished.code, Some(0), "{arguments:?}: {}", finished.stderr);
        finished.text()
    }
}

#[test]
fn a_setting_is_read_changed_and_told_with_its_origin() {
    let bench = Bench::new();
    assert_eq!(bench.says(&["config", "get", "session.model"]).trim(), "lab/coder");
    bench.says(&["config", "set", "session.max_turns", "7"]);
    assert_eq!(bench.says(&["config", "get", "session.max_turns"]).trim(), "7");
    let listed = bench.says(&["config", "list", "--show-origin"]);
    let line = listed.lines().find(|line| line.contains("session.max_turns")).expect("the setting");
    assert!(line.contains('7') && line.contains("config.toml"), "{line}");
    assert!(!listed.contains("lab-secret"));
    let settings = std::fs::read_to_string(bench.home.settings_path()).expect("the settings");
    assert!(
        settings.contains("[providers.lab]") && settings.contains("max_turns = 7"),
        "{settings}"
    );
    assert_eq!(bench.loon(&["config", "set", "session.max_turns", "many"]).code, Some(2));
    assert_eq!(bench.loon(&["config", "get", "no.such.key"]).code, Some(2));
}

#[test]
fn the_schema_of_the_settings_is_json() {
    let schema: Value =
        serde_json::from_str(&Bench::new().says(&["config", "schema"])).expect("JSON");
    assert!(schema["properties"]["session"].is_object());
}

#[test]
fn completions_exist_for_the_usual_shells() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = bench.says(&["completions", shell]);
        assert!(script.contains("loon") && script.contains("exec"), "{shell}");
    }
}

#[test]
fn the_doctor_finds_a_working_home_and_one_without_a_model() {
    let bench = Bench::new();
    let told = bench.says(&["doctor"]);
    assert!(told.contains("lab/coder"), "{told}");
    bench.home.set_settings("[session]\nmodel = \"nowhere/coder\"\n");
    let finished = bench.loon(&["doctor"]);
    assert_eq!(finished.code, Some(1), "{}", finished.text());
    assert!(finished.text().contains("nowhere"), "{}", finished.text());
}

#[test]
fn help_and_version_are_on_standard_output_and_survive_a_closed_reader() {
    let bench = Bench::new();
    assert!(bench.says(&["--help"]).contains("exec"));
    assert!(bench.says(&["exec", "--help"]).contains("--output-schema"));
    assert!(bench.says(&["--version"]).starts_with("loon "));
    let gone =
        Loon::new(&bench.home, bench.repo.path()).args(["--help"]).reader_leaves_after(0).run();
    assert!(!gone.stderr.contains("panicked"), "{}", gone.stderr);
    let full =
        Loon::new(&bench.home, bench.repo.path()).args(["--help"]).redirect(">/dev/full").run();
    assert_eq!(full.code, Some(1));
    assert!(full.stderr.contains("standard output"), "{}", full.stderr);
}

#[test]
fn the_screen_without_a_terminal_is_refused_with_a_way_out() {
    let finished = Bench::new().loon(&[]);
    assert_eq!(finished.code, Some(2));
    assert!(finished.stderr.contains("loon exec"), "{}", finished.stderr);
}
