//! What hooks of files become.

use loon_api::HookAction;

use crate::{ConfigError, Layer, Loaded, Sources, load};

fn sources(user: &str, project: &str, trusted: bool) -> Sources {
    Sources {
        root: "/srv/repo".into(),
        user: Some(("user.toml".into(), user.to_owned())),
        project: Some(("project.toml".into(), project.to_owned())),
        trusted,
        ..Sources::default()
    }
}

fn user(text: &str) -> Result<Loaded, ConfigError> {
    load(&sources(text, "", false))
}

fn refused(text: &str) -> String {
    user(text).unwrap_err().to_string()
}

const GUARD: &str =
    "[[hooks.PreToolUse]]\nmatcher = \"write|edit\"\ncommand = \"./guard\"\ntimeout_secs = 10\n";

#[test]
fn h185_a_hook_is_an_ordinary_setting_with_a_place() {
    let loaded =
        user(&format!("{GUARD}\n[[hooks.Stop]]\nurl = \"http://127.0.0.1:9/x\"\n")).unwrap();
    let [guard, stop] = loaded.hooks.as_slice() else { panic!("{:?}", loaded.hooks) };
    assert_eq!(guard.target(), "PreToolUse: ./guard");
    assert_eq!(guard.matcher.to_string(), "write|edit");
    assert_eq!((guard.timeout.as_secs(), guard.origin.as_str()), (10, "user.toml:1:1"));
    assert_eq!(stop.action, HookAction::Url("http://127.0.0.1:9/x".into()));
    assert_eq!((stop.timeout.as_secs(), stop.matcher.to_string()), (30, "*".into()));
    assert_eq!(loaded.settings.hooks.pre_tool_use[0].command.as_deref(), Some("./guard"));
    let shown = loaded.get("hooks.PreToolUse").unwrap().unwrap();
    assert_eq!(shown[0]["matcher"], "write|edit");
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}

#[test]
fn h187_an_unsupported_event_is_a_warning() {
    let loaded =
        user("[[hooks.PreToolUze]]\ncommand = \"x\"\n[[hooks.Notification]]\ncommand = \"x\"\n");
    let loaded = loaded.unwrap();
    assert!(loaded.hooks.is_empty());
    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert!(warnings[0].contains("did you mean `PreToolUse`"), "{warnings:?}");
    assert!(warnings[1].contains("hooks.Notification"), "{warnings:?}");
}

#[test]
fn h188_a_hook_has_exactly_one_of_a_command_and_a_url() {
    let both = refused("[[hooks.Stop]]\ncommand = \"x\"\nurl = \"http://a.test\"\n");
    assert!(both.contains("both `command` and `url`"), "{both}");
    let neither = refused("[[hooks.Stop]]\ntimeout_secs = 5\n");
    assert!(neither.contains("neither `command` nor `url`"), "{neither}");
    assert!(refused("[[hooks.Stop]]\ncommand = \" \"\n").contains("`command` is empty"));
    assert!(refused("[[hooks.Stop]]\nurl = \"ftp://a.test\"\n").contains("http://"));
}

#[test]
fn a_guard_that_cannot_be_read_refuses_its_file() {
    for wrong in [
        "[[hooks.PreToolUse]]\ncommand = 7\n",
        "[[hooks.PreToolUse]]\ncomand = \"./guard\"\n",
        "[[hooks.PreToolUse]]\nmatcher = \"\"\ncommand = \"./guard\"\n",
        "[[hooks.PreToolUse]]\nmatcher = \"write.*\"\ncommand = \"./guard\"\n",
        "[[hooks.PreToolUse]]\ncommand = \"./guard\"\ntimeout_secs = 0\n",
        "[hooks]\nPreToolUse = \"./guard\"\n",
        "hooks = \"./guard\"\n",
    ] {
        let words = refused(wrong);
        assert!(words.contains("user.toml"), "{wrong}: {words}");
    }
}

#[test]
fn a_matcher_without_a_tool_to_look_at_is_a_warning() {
    let loaded = user("[[hooks.Stop]]\nmatcher = \"bash\"\ncommand = \"x\"\n").unwrap();
    assert_eq!(loaded.hooks.len(), 1);
    let warning = loaded.warnings[0].to_string();
    assert!(warning.contains("hooks.Stop[0].matcher has no effect"), "{warning}");
}

#[test]
fn hooks_of_all_files_hold_and_those_of_a_project_need_trust() {
    let project = "[[hooks.PreToolUse]]\ncommand = \"./theirs\"\n";
    let loaded = load(&sources(GUARD, project, true)).unwrap();
    let names: Vec<String> = loaded.hooks.iter().map(|hook| hook.action.to_string()).collect();
    assert_eq!(names, ["./guard", "./theirs"]);
    assert_eq!(loaded.origins["hooks.PreToolUse"].layer, Layer::Project);
    let loaded = load(&sources(GUARD, project, false)).unwrap();
    assert_eq!(loaded.hooks.len(), 1);
    assert_eq!(loaded.untrusted[0].key, "hooks.PreToolUse");
    assert!(loaded.untrusted[0].needs_trust);
    // Nor can one that is not trusted take a person's own away.
    let loaded = load(&sources(GUARD, "[hooks]\nPreToolUse = []\n", true)).unwrap();
    assert_eq!(loaded.hooks.len(), 1);
}
