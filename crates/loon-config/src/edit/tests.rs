//! Edits change one thing.

use loon_api::{PermissionRule, RuleEffect};
use proptest::prelude::*;
use serde_json::json;

use super::*;

const FILE: &str = "# mine\n\n[session]\nmodel = \"a/b\"   # why\n\n[future]\nx = 1\n\n[[permissions.deny_rules]]\ntool = \"bash\" # keep\n";

fn rule(tool: &str, command: Option<&str>) -> PermissionRule {
    PermissionRule {
        tool: tool.into(),
        path_prefix: None,
        command_prefix: command.map(str::to_owned),
        host: None,
    }
}

#[test]
fn a_value_that_is_there_changes_alone() {
    let edited = set(FILE, "session.model", &json!("c/d")).unwrap();
    assert_eq!(edited, FILE.replace("\"a/b\"", "\"c/d\""));
}

#[test]
fn a_new_value_goes_into_its_table() {
    let edited = set(FILE, "session.mode", &json!("auto")).unwrap();
    assert_eq!(edited, FILE.replace("# why\n", "# why\nmode = \"auto\"\n"));
}

#[test]
fn a_new_table_comes_at_the_end() {
    let edited = set("", "providers.\"my.lab\".models.m.context_tokens", &json!(8192)).unwrap();
    assert_eq!(edited, "[providers.\"my.lab\".models.m]\ncontext_tokens = 8192\n");
    let edited = set(FILE, "budget.max_requests", &json!(5)).unwrap();
    assert_eq!(edited, format!("{FILE}\n[budget]\nmax_requests = 5\n"));
}

#[test]
fn remarks_in_a_file_without_keys_stay_on_top() {
    let edited = set("# mine\r\n", "ui.mouse", &json!(false)).unwrap();
    assert_eq!(edited, "# mine\r\n\r\n[ui]\r\nmouse = false\r\n");
    assert_eq!(remove("# mine\n", "ui.mouse").unwrap(), "# mine\n");
}

#[test]
fn inline_and_dotted_tables_stay_what_they_are() {
    assert_eq!(
        set("session = { mode = \"plan\" }\n", "session.model", &json!("a/b")).unwrap(),
        "session = { mode = \"plan\" , model = \"a/b\" }\n"
    );
    assert_eq!(
        set("session.mode = \"plan\"\n", "session.model", &json!("a/b")).unwrap(),
        "session.mode = \"plan\"\nsession.model = \"a/b\"\n"
    );
}

#[test]
fn line_ends_and_the_mark_survive() {
    let text = format!("\u{feff}{}", FILE.replace('\n', "\r\n"));
    for edited in [
        set(&text, "session.model", &json!("a/b")).unwrap(),
        add_rule(&text, RuleEffect::Deny, &rule("bash", None)).unwrap(),
        remove(&text, "session.absent").unwrap(),
    ] {
        assert_eq!(edited, text);
    }
    let edited = set(&text, "session.mode", &json!("auto")).unwrap();
    assert_eq!(edited, text.replace("# why\r\n", "# why\r\nmode = \"auto\"\r\n"));
}

#[test]
fn rules_are_added_once_in_the_form_the_file_has() {
    let new = rule("bash", Some("git push"));
    let edited = add_rule(FILE, RuleEffect::Deny, &new).unwrap();
    assert_eq!(
        edited,
        format!(
            "{FILE}\n[[permissions.deny_rules]]\ntool = \"bash\"\ncommand_prefix = \"git push\"\n"
        )
    );
    assert_eq!(add_rule(&edited, RuleEffect::Deny, &new).unwrap(), edited);
    assert_eq!(
        add_rule("", RuleEffect::Allow, &rule("read", None)).unwrap(),
        "[[permissions.allow_rules]]\ntool = \"read\"\n"
    );
    assert_eq!(
        add_rule(
            "[permissions]\nallow_rules = [{ tool = \"read\" }]\n",
            RuleEffect::Allow,
            &rule("grep", None)
        )
        .unwrap(),
        "[permissions]\nallow_rules = [{ tool = \"read\" }, { tool = \"grep\" }]\n"
    );
}

#[test]
fn removing_gives_the_decision_back() {
    assert_eq!(
        remove(FILE, "session.model").unwrap(),
        FILE.replace("model = \"a/b\"   # why\n", "")
    );
    assert_eq!(remove(FILE, "nothing.here").unwrap(), FILE);
}

#[test]
fn text_settings_take_words_as_they_are() {
    assert_eq!(parse_value("ui.spinner", "true").unwrap(), json!("true"));
    assert_eq!(parse_value("ui.spinner", "\"quoted\"").unwrap(), json!("quoted"));
    assert_eq!(parse_value("session.max_turns", "7").unwrap(), json!(7));
    assert_eq!(parse_value("permissions.write_roots", "[\"/a\"]").unwrap(), json!(["/a"]));
    assert!(parse_value("ui.spiner", "x").is_err());
    assert!(set("", "providers", &json!("x")).is_err());
}

#[test]
fn wrong_keys_and_read_only_ones_are_refused_by_name() {
    let error = set(FILE, "session.modle", &json!("x")).unwrap_err().to_string();
    assert_eq!(error, "no setting is called `session.modle`; did you mean `session.model`?");
    assert!(set(FILE, "schema_version", &json!(1)).is_err());
    assert!(add_rule(FILE, RuleEffect::Allow, &rule("bash", Some(" "))).is_err());
    assert!(set("session = 5\n", "session.model", &json!("x")).is_err());
}

proptest! {
    #[test]
    fn setting_text_reads_back_and_keeps_the_rest(value in "\\PC{0,40}|[a-z\\n\\t\"'\\\\]{0,20}") {
        let edited = set(FILE, "session.model", &json!(value)).unwrap();
        let parsed: toml_edit::DocumentMut = edited.parse().unwrap();
        prop_assert_eq!(parsed["session"]["model"].as_str(), Some(value.as_str()));
        prop_assert!(edited.ends_with(&FILE[FILE.find("   # why").unwrap()..]));
    }

    #[test]
    fn no_text_makes_an_edit_panic(text in "\\PC{0,60}|[a-z\\[\\]=.\"{}\\n# ]{0,60}") {
        let _ = set(&text, "session.model", &json!("x"));
        let _ = remove(&text, "session.model");
        let _ = add_rule(&text, RuleEffect::Deny, &rule("bash", None));
    }
}
