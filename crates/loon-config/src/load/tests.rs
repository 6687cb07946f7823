//! What layers become.

use std::time::Duration;

use loon_api::{Effort, Mode, RuleEffect, RuleOrigin};
use secrecy::ExposeSecret;
use serde_json::json;

use super::*;
use crate::settings::ProviderKind;

const LAB: &str = "[providers.lab]\nkind = \"openai-chat\"\nbase_url = \"http://127.0.0.1:8081/v1\"\napi_key_env = \"LAB_KEY\"\n\n[session]\nmodel = \"lab/coder\"\nmode = \"default\"\n";

fn file(name: &str, text: &str) -> (PathBuf, String) {
    (PathBuf::from(name), text.to_owned())
}

fn sources(user: &str, project: &str, local: &str) -> Sources {
    Sources {
        root: "/srv/repo".into(),
        home: Some("/home/me".into()),
        user: Some(file("user.toml", user)),
        project: Some(file("project.toml", project)),
        local: Some(file("local.toml", local)),
        servers: None,
        environment: Vec::new(),
        overrides: Vec::new(),
        trusted: true,
    }
}

fn user(text: &str) -> Result<Loaded, ConfigError> {
    load(&Sources {
        root: "/srv/repo".into(),
        user: Some(file("user.toml", text)),
        ..Sources::default()
    })
}

fn error(text: &str) -> String {
    user(text).unwrap_err().to_string()
}

#[test]
fn nothing_gives_the_defaults() {
    let loaded = load(&Sources { root: "/srv/repo".into(), ..Sources::default() }).unwrap();
    assert_eq!(loaded.settings.session, crate::Session::default());
    assert_eq!(loaded.settings.session.max_turns, 500);
    assert_eq!(loaded.rules.write_roots, [PathBuf::from("/srv/repo")]);
    assert!(loaded.warnings.is_empty() && loaded.untrusted.is_empty() && loaded.origins.is_empty());
}

#[test]
fn a_provider_reads_whole() {
    let text = format!(
        "{LAB}[providers.lab.headers]\nX-Team = \"blue\"\n[providers.lab.models.\"org/coder.2\"]\ncontext_tokens = 32768\neffort = \"high\"\nprice = {{ input = \"0.25\", cached = 0.025, output = 2 }}\n[budget]\nmax_usd = \"1.50\"\ndeadline = \"10m\"\n"
    );
    let settings = user(&text).unwrap().settings;
    let lab = &settings.providers["lab"];
    assert_eq!(lab.kind, ProviderKind::OpenAiChat);
    assert_eq!(lab.base_url.as_deref(), Some("http://127.0.0.1:8081/v1"));
    assert_eq!(lab.headers["X-Team"].expose_secret(), "blue");
    assert_eq!((lab.connect_timeout_secs, lab.idle_timeout_secs), (10, 300));
    let model = &lab.models["org/coder.2"];
    assert_eq!(model.context_tokens, Some(32_768));
    assert_eq!(model.effort, Some(Effort::High));
    let price = model.price.unwrap();
    assert_eq!(price.input.to_string(), "0.25");
    assert_eq!(price.cached.unwrap().to_string(), "0.025");
    assert_eq!(price.output.to_string(), "2");
    assert_eq!(settings.budget.max_usd.unwrap().to_string(), "1.50");
    assert_eq!(settings.budget.deadline, Some(Duration::from_mins(10)));
}

#[test]
fn layers_merge_tables_and_replace_arrays_in_rising_order() {
    let mut sources = sources(
        &format!("{LAB}[permissions]\nwrite_roots = [\"~/a\", \"/b\"]\n"),
        "[session]\nmode = \"auto\"\n[permissions]\nwrite_roots = [\"../c\"]\n",
        "[providers.lab]\nbase_url = \"http://localhost:1/v1\"\n",
    );
    sources.overrides = vec!["session.max_turns=7".into(), "session.model = lab/other".into()];
    let loaded = load(&sources).unwrap();
    let settings = &loaded.settings;
    assert_eq!(settings.session.model.as_deref(), Some("lab/other"));
    assert_eq!(settings.session.mode, Mode::Auto);
    assert_eq!(settings.session.max_turns, 7);
    assert_eq!(settings.providers["lab"].base_url.as_deref(), Some("http://localhost:1/v1"));
    assert_eq!(settings.providers["lab"].api_key_env.as_deref(), Some("LAB_KEY"));
    assert_eq!(loaded.rules.write_roots, [PathBuf::from("/srv/repo"), PathBuf::from("/srv/c")]);
    let origin = |key: &str| loaded.origins[key].to_string();
    assert_eq!(origin("session.mode"), "project.toml:2:1");
    assert_eq!(origin("providers.lab.base_url"), "local.toml:2:1");
    assert_eq!(origin("providers.lab.kind"), "user.toml:2:1");
    assert_eq!(origin("session.max_turns"), "command line");
}

#[test]
fn rules_of_all_layers_hold_with_their_places() {
    let loaded = load(&sources(
        "[[permissions.deny_rules]]\ntool = \"bash\"\ncommand_prefix = \"git push\"\n",
        "[permissions]\ndeny_rules = []\nallow_rules = [\n  { tool = \"read\" },\n  { tool = \"bash\", command_prefix = \"cargo test\" },\n]\n",
        "\n[[permissions.ask_rules]]\ntool = \"*\"\nhost = \"example.org\"\n",
    ))
    .unwrap();
    let found: Vec<_> = loaded
        .rules
        .rules
        .iter()
        .map(|(effect, rule, at)| (*effect, rule.tool.as_str(), at.clone()))
        .collect();
    let at = |source: &str, line| RuleOrigin { source: source.into(), line: Some(line) };
    assert_eq!(
        found,
        [
            (RuleEffect::Deny, "bash", at("user.toml", 1)),
            (RuleEffect::Allow, "read", at("project.toml", 4)),
            (RuleEffect::Allow, "bash", at("project.toml", 5)),
            (RuleEffect::Ask, "*", at("local.toml", 2)),
        ]
    );
    assert_eq!(loaded.settings.permissions.deny_rules.len(), 1);
    assert_eq!(loaded.origins["permissions.ask_rules"].to_string(), "local.toml:2:15");
    assert!(loaded.get("permissions.allow_rules[0]").is_err());
    assert_eq!(
        loaded.get("permissions.deny_rules").unwrap(),
        Some(json!([{"tool": "bash", "command_prefix": "git push"}]))
    );
}

#[test]
fn a_folder_without_trust_can_only_tighten() {
    let project = "[providers.lab]\nbase_url = \"http://evil.example/v1\"\n[providers.other]\nkind = \"nonsense\"\n[session]\nmode = \"auto\"\nmodel = \"lab/b\"\nmax_turns = 9\n[budget]\nmax_usd = 1000\n[permissions]\nwrite_roots = [\"/etc\"]\n[[permissions.allow_rules]]\ntool = \"*\"\n[[permissions.deny_rules]]\ntool = \"write\"\n[ui]\nmouse = false\n";
    let mut sources = sources(LAB, project, "[session]\nmode = \"plan\"\n");
    sources.trusted = false;
    let loaded = load(&sources).unwrap();
    assert_eq!(
        loaded.settings.providers["lab"].base_url.as_deref(),
        Some("http://127.0.0.1:8081/v1")
    );
    assert_eq!(loaded.settings.providers.len(), 1);
    assert_eq!(loaded.settings.session.mode, Mode::Plan);
    assert_eq!(loaded.settings.session.model.as_deref(), Some("lab/b"));
    assert_eq!(loaded.settings.session.max_turns, 500);
    assert_eq!(loaded.settings.budget.max_usd, None);
    assert!(!loaded.settings.ui.mouse);
    assert_eq!(loaded.rules.write_roots, [PathBuf::from("/srv/repo")]);
    assert_eq!(loaded.rules.rules.len(), 1);
    assert_eq!(loaded.rules.rules[0].0, RuleEffect::Deny);
    let ignored: Vec<_> = loaded.untrusted.iter().map(ToString::to_string).collect();
    assert_eq!(
        ignored,
        [
            "project.toml:1:2: providers has no effect until the folder is trusted",
            "project.toml:8:1: session.max_turns has no effect until the folder is trusted",
            "project.toml:10:1: budget.max_usd has no effect until the folder is trusted",
            "project.toml:12:1: permissions.write_roots has no effect until the folder is trusted",
            "project.toml:13:15: permissions.allow_rules has no effect until the folder is trusted",
            "project.toml:6:1: session.mode has no effect until the folder is trusted",
        ]
    );
}

#[test]
fn bypass_comes_from_the_user_or_the_command_line_alone() {
    for (project, local) in
        [("[session]\nmode = \"bypass\"\n", ""), ("", "[session]\nmode = \"bypass\"\n")]
    {
        let loaded = load(&sources("", project, local)).unwrap();
        assert_eq!(loaded.settings.session.mode, Mode::Default);
        assert_eq!(loaded.untrusted.len(), 1);
        assert!(!loaded.untrusted[0].needs_trust);
    }
    assert_eq!(user("[session]\nmode = \"bypass\"\n").unwrap().settings.session.mode, Mode::Bypass);
}

#[test]
fn a_wrong_file_is_named_with_line_and_column() {
    assert!(error("[session]\nmodel = \"a\n").starts_with("user.toml:2:"));
    assert!(error("schema_version = 2\n").contains("newer Loom"));
    assert_eq!(
        error("[budget]\ndeadline = \"soon\"\n"),
        "user.toml:2:1: budget.deadline is \"soon\", and takes text such as \"10m\""
    );
    let info = user("[session]\nmode = \"wild\"\n").unwrap_err().info();
    assert_eq!(info.code, loon_api::ErrorCode::Invalid);
    assert_eq!(
        info.message,
        "user.toml:2:1: session.mode is \"wild\", and takes one of `default`, `auto`, `bypass`, `plan`"
    );
}

#[test]
fn a_wrong_value_costs_only_itself_and_is_told_with_what_is_allowed() {
    let text = "\u{feff}[session]\r\nmax_turns = \"ten\"\r\ntool_timeout_secs = 0\r\nmodel = 5\r\n\
                tools = \"few\"\r\n[ui]\r\nmouse = 1\r\nspinner = \"at it\"\r\n[appearance]\r\ncolor = []\r\n\
                [providers.x]\r\nbase_url = \"http://a/v1\"\r\n[providers.y]\r\nkind = \"anthropic\"\r\n\
                base_url = \"http://b/v1\"\r\nmodels = \"hush\"\r\n[providers.z]\r\nkind = \"anthropic\"\r\n\
                base_url = \"ftp://c\"\r\n";
    let loaded = user(text).unwrap();
    let told: Vec<_> = loaded.problems.iter().map(ToString::to_string).collect();
    let mut told = told;
    told.sort();
    assert_eq!(
        told,
        [
            "user.toml:10:1: appearance.color is a list, and takes one of `auto`, `always`, `never`; it has no effect",
            "user.toml:11:12: providers.x: missing field `kind`; it has no effect",
            "user.toml:16:1: providers.y.models is text, and takes a table; it has no effect",
            "user.toml:17:12: providers.z: a provider needs `base_url` with its version segment, like \"http://127.0.0.1:8081/v1\"; it has no effect",
            "user.toml:19:1: providers.z.base_url: must begin with http:// or https://; it has no effect",
            "user.toml:2:1: session.max_turns is \"ten\", and takes a whole number from 1 to 100000; it has no effect",
            "user.toml:3:1: session.tool_timeout_secs is 0, and takes a whole number from 1 to 86400; it has no effect",
            "user.toml:4:1: session.model is 5, and takes text; it has no effect",
            "user.toml:5:1: session.tools is \"few\", and takes one of `full`, `lean`; it has no effect",
            "user.toml:7:1: ui.mouse is 1, and takes true or false; it has no effect",
        ]
    );
    assert_eq!(loaded.settings.session, crate::Session::default());
    assert_eq!(loaded.settings.ui.spinner, "at it");
    assert_eq!(loaded.settings.providers.keys().collect::<Vec<_>>(), ["y"]);
}

#[test]
fn a_wrong_value_that_safety_hangs_on_refuses_the_file() {
    for text in [
        "[session]\nmode = \"Plan\"\n",
        "[budget]\nmax_usd = \"much\"\n",
        "[budget]\nmax_tokens = 0\n",
        "budget = 5\n",
        "[permissions]\nwrite_roots = \"/a\"\n",
    ] {
        assert!(user(text).is_err(), "{text}");
    }
    let wrong = Sources { overrides: vec!["ui.mouse=maybe".into()], ..Sources::default() };
    let error = load(&wrong).unwrap_err().to_string();
    assert_eq!(error, "command line: ui.mouse is \"maybe\", and takes true or false");
}

#[test]
fn a_file_of_nothing_but_mistakes_is_refused_as_a_whole() {
    let many: String =
        (0..200).fold(String::new(), |text, n| format!("{text}[providers.p{n}]\nscript = \"a\"\n"));
    assert!(user(&many).is_err());
}

#[test]
fn variables_are_a_layer_between_the_files_and_the_command_line() {
    let mut sources = sources(LAB, "", "[session]\nmax_turns = 5\ntool_timeout_secs = 8\n");
    let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    sources.environment = vec![
        set("LOON_SESSION_MAX_TURNS", "6"),
        set("LOON_SESSION_MODEL", "lab/123"),
        set("LOON_UI_SPINNER", "12"),
        set("LOON_SESSION_TOOL_TIMEOUT_SECS", ""),
        set("LOON_PROVIDERS__LAB__BASE_URL", "http://localhost:2/v1"),
        set("LOON_PERMISSIONS_DENY_RULES", "[{ tool = \"bash\" }]"),
        set("LOON_SESSION_MODLE", "x"),
        set("LOON_UI_WHOLLY_NEW", "x"),
        set("LOON_DATA_DIR", "/x"),
        set("LOON_SOMETHING", "x"),
        set("LOON_UI_MOUSE", "maybe"),
    ];
    sources.overrides = vec!["session.model=lab/last".into()];
    let loaded = load(&sources).unwrap();
    let settings = &loaded.settings;
    assert_eq!(settings.session.max_turns, 6);
    assert_eq!(settings.session.tool_timeout_secs, 8);
    assert_eq!(settings.session.model.as_deref(), Some("lab/last"));
    assert_eq!(settings.ui.spinner, "12");
    assert!(settings.ui.mouse);
    assert_eq!(settings.providers["lab"].base_url.as_deref(), Some("http://localhost:2/v1"));
    assert_eq!(loaded.rules.rules.len(), 1);
    assert_eq!(loaded.rules.rules[0].2.source, "LOON_PERMISSIONS_DENY_RULES");
    assert_eq!(loaded.origins["session.max_turns"].to_string(), "LOON_SESSION_MAX_TURNS");
    assert_eq!(
        loaded.origins["providers.lab.base_url"].to_string(),
        "LOON_PROVIDERS__LAB__BASE_URL"
    );
    let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "LOON_SESSION_MODLE: no setting has this variable; did you mean LOON_SESSION_MODEL?",
            "LOON_UI_WHOLLY_NEW: no setting has this variable; it has no effect",
        ]
    );
    assert_eq!(
        loaded.problems[0].to_string(),
        "LOON_UI_MOUSE: ui.mouse is \"maybe\", and takes true or false; it has no effect"
    );
    sources.environment = vec![set("LOON_PERMISSIONS_DENY_RULE", "[]")];
    assert!(load(&sources).unwrap_err().to_string().contains("LOON_PERMISSIONS_DENY_RULES"));
}

#[test]
fn hostile_files_are_refused_in_good_order() {
    let deep = 200_000;
    for text in [
        format!("a = {}{}", "[".repeat(deep), "]".repeat(deep)),
        format!("a = {}1{}", "{a=".repeat(deep), "}".repeat(deep)),
        format!("{}a = 1", "a.".repeat(deep)),
        format!("[{}a]\nb = 1", "a.".repeat(deep)),
        "a = \"\0\"".to_owned(),
        "\0".to_owned(),
    ] {
        assert!(user(&text).is_err(), "{}", &text[..20.min(text.len())]);
        let overrides = vec![format!("ui.spinner={text}")];
        let _ = load(&Sources { overrides, ..Sources::default() });
        let overrides = vec![format!("{}=1", "a.".repeat(deep) + "a")];
        assert!(load(&Sources { overrides, ..Sources::default() }).is_err());
    }
}

#[test]
fn nothing_that_was_meant_as_a_rule_is_passed_over() {
    for (text, says) in [
        ("[[permissions.deny_rule]]\ntool = \"bash\"\n", "did you mean `deny_rules`"),
        ("[[permission.deny_rules]]\ntool = \"bash\"\n", "did you mean `permissions`"),
        ("permissions = []\n", "must be a table"),
        ("[permissions]\ndeny_rules = \"bash\"\n", "must be a list"),
        (
            "[[permissions.allow_rules]]\ntool = \"bash\"\ncomand_prefix = \"git\"\n",
            "did you mean `command_prefix`",
        ),
        ("[[permissions.deny_rules]]\ncommand_prefix = \"git\"\n", "missing field `tool`"),
        (
            "[[permissions.allow_rules]]\ntool = \"bash\"\ncommand_prefix = \"\"\n",
            "would match everything",
        ),
        ("[[permissions.deny_rules]]\ntool = \"\"\n", "`tool` is empty"),
        (
            "[[permissions.deny_rules]]\ntool = \"a\"\nhost = \"b\"\npath_prefix = \"/c\"\n",
            "more than one matcher",
        ),
        (
            "[[permissions.deny_rules]]\ntool = \"fetch\"\nhost = \"https://a.example\"\n",
            "exact host name",
        ),
        ("[permissions]\nwrite_roots = [\"a/../../../\"]\n", "root of the file system"),
    ] {
        let error = error(text);
        assert!(error.starts_with("user.toml:") && error.contains(says), "{text}: {error}");
        // An untrusted project is held to the same for what could deny.
        if !text.contains("allow_rules") && !text.contains("write_roots") {
            let mut sources = sources("", text, "");
            sources.trusted = false;
            assert!(load(&sources).is_err(), "{text}");
        }
    }
}

#[test]
fn unknown_keys_warn_with_the_word_that_was_meant() {
    let loaded = user(
        "modle = \"a\"\n[sesion]\nmodel = \"x\"\n[session]\nmodle = \"a\"\n[ui]\nwholly_new = 1\n",
    )
    .unwrap();
    let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "user.toml:1:1: no setting is called modle; it has no effect",
            "user.toml:2:2: no setting is called sesion; did you mean `session`?",
            "user.toml:5:1: no setting is called session.modle; did you mean `model`?",
            "user.toml:7:1: no setting is called ui.wholly_new; it has no effect",
        ]
    );
    let wrong = Sources { overrides: vec!["session.modle=x".into()], ..Sources::default() };
    assert!(load(&wrong).unwrap_err().to_string().contains("did you mean `model`"));
    let wrong = Sources { overrides: vec!["session.model".into()], ..Sources::default() };
    assert!(load(&wrong).is_err());
}

#[test]
fn secrets_are_masked_wherever_values_are_shown() {
    let text = format!("{LAB}[providers.lab.headers]\nAuthorization = \"Bearer hush\"\n")
        .replace("api_key_env = \"LAB_KEY\"", "api_key = \"hush\"");
    let loaded = user(&text).unwrap();
    assert_eq!(loaded.settings.providers["lab"].api_key.as_ref().unwrap().expose_secret(), "hush");
    assert_eq!(loaded.get("providers.lab.api_key").unwrap(), Some(json!(schema::MASK)));
    let shown = format!("{loaded:?} {:?} {:?}", loaded.entries(), loaded.get("providers").unwrap());
    assert!(!shown.contains("hush"), "{shown}");
    let text = format!("{LAB}[providers.lab.headers]\na = 1234567\n")
        .replace("api_key_env = \"LAB_KEY\"", "api_key = 7654321\nheaders.b = \"hush\"");
    let text = text.replace("headers.b = \"hush\"\n", "");
    let loaded = user(&text).unwrap();
    let told = format!("{:?}", loaded.problems);
    assert!(!told.contains("7654321") && !told.contains("1234567"), "{told}");
    assert!(told.contains("providers.lab.api_key must be text"), "{told}");
    let login = LAB.replace("http://127", "http://me:hush@127");
    let loaded = user(&login).unwrap();
    assert_eq!(
        loaded.get("providers.lab.base_url").unwrap(),
        Some(json!(format!("http://{}@127.0.0.1:8081/v1", schema::MASK)))
    );
}

#[test]
fn context7_has_a_key_a_place_and_a_time() {
    let settings = user("").unwrap().settings.context7;
    assert!(settings.enabled && settings.api_key.is_none());
    assert_eq!(settings.base_url, "https://context7.com");
    let loaded = load(&sources(
        "[context7]\nenabled = false\napi_key = \"hush\"\nbase_url = \"http://127.0.0.1:1\"\n",
        "[context7]\napi_key = \"loud\"\n",
        "[web]\nprivate_hosts = [\"docs.corp.example\"]\n",
    ))
    .unwrap();
    assert!(!loaded.settings.context7.enabled);
    assert_eq!(loaded.settings.context7.api_key.as_ref().unwrap().expose_secret(), "loud");
    assert_eq!(loaded.settings.context7.base_url, "http://127.0.0.1:1");
    assert_eq!(loaded.settings.web.private_hosts, ["docs.corp.example"]);
    assert_eq!(loaded.get("context7.api_key").unwrap(), Some(json!(schema::MASK)));
    let shown = format!("{loaded:?} {:?}", loaded.entries());
    assert!(!shown.contains("hush") && !shown.contains("loud"), "{shown}");
    assert!(loaded.warnings[0].to_string().starts_with("project.toml:2:1: context7.api_key"));
    let wrong = user("[context7]\nbase_url = \"context7.com\"\n").unwrap();
    let told = wrong.problems[0].to_string();
    assert!(told.contains("context7.base_url: must begin with http"), "{told}");
    assert_eq!(wrong.settings.context7.base_url, "https://context7.com");
}

#[test]
fn values_can_be_asked_for_by_key() {
    let loaded = user(LAB).unwrap();
    assert_eq!(loaded.get("session.model").unwrap(), Some(json!("lab/coder")));
    assert_eq!(loaded.get("session.max_turns").unwrap(), Some(json!(500)));
    assert_eq!(loaded.get("budget.max_usd").unwrap(), None);
    assert_eq!(loaded.get("providers.lab.kind").unwrap(), Some(json!("openai-chat")));
    assert_eq!(
        loaded.get("session").unwrap(),
        Some(json!({
            "model": "lab/coder",
            "mode": "default",
            "max_turns": 500,
            "tool_timeout_secs": 600,
            "tools": "full"
        }))
    );
    assert!(loaded.get("session.nothing").is_err());
    let entries = loaded.entries();
    let entry = |key: &str| entries.iter().find(|entry| entry.key == key).unwrap();
    assert_eq!(entry("appearance.color").value, Some(json!("auto")));
    assert_eq!(entry("appearance.color").origin.to_string(), "built in");
    assert_eq!(entry("providers.lab.kind").origin.line, Some(2));
}

#[test]
fn a_key_in_the_shared_file_is_warned_about() {
    let loaded = load(&sources(LAB, "[providers.lab]\napi_key = \"hush\"\n", "")).unwrap();
    assert!(loaded.warnings[0].to_string().starts_with("project.toml:2:1: providers.lab.api_key"));
}

#[test]
fn every_setting_says_what_it_is_and_what_it_does() {
    for (names, field) in schema::leaves() {
        let text = |keyword: &str| {
            field.get(keyword).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        assert!(!text("title").is_empty(), "{names:?} has no title");
        assert!(text("description").ends_with('.'), "{names:?} has no description");
    }
    assert!(!schema::schema().to_string().contains("\"null\""));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_loading_panic(text in "\\PC{0,80}|([a-z_]{1,12}( = |\\.|\\[|\\]|\n|\"|\\{|\\}|[0-9]){1,3}){0,12}") {
        let _ = user(&text);
        let _ = load(&sources("", &text, &text));
    }

    #[test]
    fn no_layer_above_takes_a_deny_away(
        above in proptest::sample::subsequence(
            vec!["[permissions]\ndeny_rules = []\n", "[[permissions.allow_rules]]\ntool = \"*\"\n", "[session]\nmode = \"auto\"\n"],
            0..=3,
        ),
        trusted: bool,
    ) {
        let mut sources = sources("[[permissions.deny_rules]]\ntool = \"bash\"\n", "", &above.concat());
        sources.trusted = trusted;
        if let Ok(loaded) = load(&sources) {
            proptest::prop_assert!(loaded.rules.rules.iter().any(|rule| rule.0 == RuleEffect::Deny && rule.1.tool == "bash"));
        }
    }
}

#[test]
fn a_combo_reads_whole_and_has_defaults() {
    use loon_api::ModelFeature::{Reasoning, StructuredOutput, Tools, Vision};
    let text = format!(
        "{LAB}[combos.steady]\nmembers = [\"lab/a\", \"lab/b\"]\n[combos.wide]\nmembers = [\"lab/a\"]\nretries = 0\nneeds = [\"vision\", \"structured_output\"]\nmin_context = 32000\n[providers.lab.models.a]\nfeatures = [\"tools\", \"reasoning\"]\n"
    );
    let settings = user(&text).unwrap().settings;
    let steady = &settings.combos["steady"];
    assert_eq!((steady.members.len(), steady.retries, steady.min_context), (2, 2, None));
    assert!(steady.needs.is_empty());
    let wide = &settings.combos["wide"];
    assert_eq!((wide.retries, wide.min_context), (0, Some(32_000)));
    assert_eq!(wide.needs, [Vision, StructuredOutput]);
    assert_eq!(settings.providers["lab"].models["a"].features, Some(vec![Tools, Reasoning]));
}

#[test]
fn a_combo_with_a_wrong_part_is_no_combo() {
    let text = "[combos.a]\nmembers = [\"lab/x\"]\nneeds = [\"sight\"]\n[combos.b]\nmembers = []\n\
                [combos.c]\nretries = 1\n[combos.d]\nmembers = [\"lab/x\"]\nretries = 3\n\
                [combos.e]\nmembers = [\"lab/x\"]\n[providers.combo]\nkind = \"openai-chat\"\n\
                base_url = \"http://a/v1\"\n";
    let loaded = user(text).unwrap();
    assert_eq!(loaded.settings.combos.keys().collect::<Vec<_>>(), ["e"]);
    assert!(loaded.settings.providers.is_empty());
    let told: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    let says =
        |what: &str| assert!(told.iter().any(|line| line.contains(what)), "{what}: {told:#?}");
    says("combos.a.needs must be a list");
    says("combos.b: `members` must name at least one model as `provider/model`");
    says("combos.c: missing field `members`");
    says("combos.d.retries");
    says("providers.combo: no provider may be called `combo`");
}

#[test]
fn servers_of_the_projects_own_file_take_trust_and_give_way_to_the_settings() {
    let text = r#"{"mcpServers": {"lab": {"command": "theirs"}, "docs": {"command": "docs"}}}"#;
    let user = "[mcp.lab]\ncommand = [\"mine\"]\n";
    let with = |text: Result<&str, &str>, trusted| {
        let text = text.map(str::to_owned).map_err(str::to_owned);
        let servers = Some((PathBuf::from(".mcp.json"), text));
        load(&Sources { servers, trusted, ..sources(user, "", "") }).unwrap()
    };
    let trusted = with(Ok(text), true);
    let commands: Vec<_> = trusted
        .settings
        .mcp
        .iter()
        .map(|(name, it)| (name.as_str(), it.command[0].as_str()))
        .collect();
    assert_eq!(commands, [("lab", "mine"), ("docs", "docs")]);
    assert!(trusted.untrusted.is_empty() && trusted.problems.is_empty());
    let untrusted = with(Ok(text), false);
    assert_eq!(untrusted.settings.mcp.len(), 1);
    assert_eq!(
        untrusted.untrusted[0].to_string(),
        ".mcp.json: mcp has no effect until the folder is trusted"
    );
    for wrong in [Ok("{"), Err("it is a folder")] {
        let loaded = with(wrong, true);
        assert_eq!((loaded.settings.mcp.len(), loaded.problems.len()), (1, 1));
    }
}

#[test]
fn a_servers_settings_have_defaults_and_its_secrets_are_masked() {
    let text = "[mcp.lab]\nurl = \"https://x.test\"\nheaders = { key = \"very-secret\" }\n";
    let loaded = user(text).unwrap();
    let server = &loaded.settings.mcp["lab"];
    assert!(server.enabled && !server.warm && server.startup_timeout_secs == 30);
    assert!(!format!("{:?}", loaded.entries()).contains("very-secret"));
}
