//! Files are read together and written one at a time, whole or not at all.

use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;

use super::*;
use crate::edit;

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
}

fn paths(dir: &Path) -> Paths {
    Paths::usual(&dir.join("work"), Some(dir), Some(&dir.join("settings")))
}

fn set_model(paths: &Paths, layer: Layer) -> Result<Loaded, ConfigError> {
    update(paths, &Inputs::default(), true, layer, |text| {
        edit::set(text, "session.model", &json!("c/d"))
    })
}

#[test]
fn a_change_is_written_with_a_private_mode_and_holds_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    let loaded = set_model(&paths, Layer::Local).unwrap();
    assert_eq!(loaded.settings.session.model.as_deref(), Some("c/d"));
    let file = paths.local.unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "[session]\nmodel = \"c/d\"\n");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_link_stays_a_link_and_a_dangling_one_gets_its_target() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    write(&dir.path().join("dot/config.toml"), "# mine\n[session]\nmodel = \"a/b\" # why\n");
    fs::create_dir_all(dir.path().join("settings")).unwrap();
    let link = paths.user.clone().unwrap();
    symlink("../dot/config.toml", &link).unwrap();
    set_model(&paths, Layer::User).unwrap();
    assert!(link.is_symlink());
    let target = dir.path().join("dot/config.toml");
    assert_eq!(fs::read_to_string(&target).unwrap(), "# mine\n[session]\nmodel = \"c/d\" # why\n");

    fs::remove_file(&target).unwrap();
    set_model(&paths, Layer::User).unwrap();
    assert!(link.is_symlink());
    assert!(target.exists());
}

#[test]
fn what_would_not_load_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    let file = paths.user.clone().unwrap();
    write(&file, "[session]\nmodel = \"a/b\"\n");
    let result = update(&paths, &Inputs::default(), true, Layer::User, |text| {
        edit::set(text, "session.max_turns", &json!("ten"))
    });
    assert!(matches!(result, Err(ConfigError::Invalid { .. })), "{result:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "[session]\nmodel = \"a/b\"\n");
}

#[test]
fn a_change_by_another_program_meanwhile_is_kept_beside_ours() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    let file = paths.user.clone().unwrap();
    for (before, meanwhile) in [(Some("[ui]\n"), "# other\n"), (None, "# appeared\n")] {
        let _ = fs::remove_file(&file);
        if let Some(before) = before {
            write(&file, before);
        }
        let looks = std::cell::Cell::new(0);
        update(&paths, &Inputs::default(), true, Layer::User, |text| {
            looks.set(looks.get() + 1);
            if looks.get() == 1 {
                write(&file, meanwhile);
            }
            edit::set(text, "session.model", &json!("c/d"))
        })
        .unwrap();
        assert_eq!(looks.get(), 2);
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with(meanwhile) && text.contains("model = \"c/d\""), "{text}");
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "no leftovers");
    }
}

#[test]
fn a_file_that_never_stays_still_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    let file = paths.user.clone().unwrap();
    let looks = std::cell::Cell::new(0);
    let result = update(&paths, &Inputs::default(), true, Layer::User, |text| {
        looks.set(looks.get() + 1);
        write(&file, &format!("# {}\n", looks.get()));
        edit::set(text, "session.model", &json!("c/d"))
    });
    assert!(matches!(result, Err(ConfigError::Changed { .. })), "{result:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("# {}\n", looks.get()));
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    let values = [
        ("session.model", json!("c/d")),
        ("session.max_turns", json!(7)),
        ("ui.mouse", json!(false)),
        ("ui.spinner", json!("at it")),
        ("budget.max_requests", json!(9)),
        ("appearance.ascii", json!(true)),
    ];
    std::thread::scope(|threads| {
        for (key, value) in &values {
            let paths = &paths;
            threads.spawn(move || {
                let change = |text: &str| edit::set(text, key, value);
                update(paths, &Inputs::default(), false, Layer::User, change).unwrap();
            });
        }
    });
    let loaded = load_files(&paths, &Inputs::default(), false).unwrap();
    for (key, value) in values {
        assert_eq!(loaded.get(key).unwrap(), Some(value), "{key}");
    }
}

#[test]
fn a_file_keeps_its_mode_except_that_a_secret_is_private() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    let file = paths.user.clone().unwrap();
    write(&file, "[providers.lab]\nkind = \"anthropic\"\nbase_url = \"http://a/v1\"\n");
    let mode = |file: &Path| file.metadata().unwrap().permissions().mode() & 0o777;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    set_model(&paths, Layer::User).unwrap();
    assert_eq!(mode(&file), 0o644);
    update(&paths, &Inputs::default(), true, Layer::User, |text| {
        edit::set(text, "providers.lab.api_key", &json!("hush"))
    })
    .unwrap();
    assert_eq!(mode(&file), 0o600);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    let error = update(&paths, &Inputs::default(), true, Layer::User, |text| {
        edit::remove(text, "session.model")
    });
    let error = error.unwrap_err().info();
    assert!(
        error.message.contains("read-only") && error.hints[0].contains("writable"),
        "{error:?}"
    );
}

#[test]
fn a_link_does_not_lead_a_write_out_of_the_project() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    fs::create_dir_all(&paths.root).unwrap();
    let outside = dir.path().join("outside");
    write(&outside.join("config.toml"), "# theirs\n");
    symlink(&outside, paths.root.join(".loon")).unwrap();
    assert_eq!(load_files(&paths, &Inputs::default(), true).unwrap().settings.session.model, None);
    for layer in [Layer::Project, Layer::Local] {
        let error = set_model(&paths, layer).unwrap_err().to_string();
        assert!(error.contains("leads out of the project"), "{error}");
    }
    assert_eq!(fs::read_to_string(outside.join("config.toml")).unwrap(), "# theirs\n");
    assert!(!outside.join("config.local.toml").exists());
}

#[test]
fn a_file_in_the_place_of_the_folder_holds_no_settings_and_is_no_place_for_any() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    write(&paths.root.join(".loon"), "not a folder");
    assert_eq!(load_files(&paths, &Inputs::default(), true).unwrap().settings.session.model, None);
    let error = set_model(&paths, Layer::Local).unwrap_err().info();
    assert!(error.hints[0].contains("stands where the settings folder belongs"), "{error:?}");
}

#[test]
fn a_value_that_would_have_no_effect_is_not_written_but_an_old_one_is_no_hindrance() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    write(&paths.user.clone().unwrap(), "[ui]\nmouse = \"maybe\"\n");
    set_model(&paths, Layer::User).unwrap();
    for trusted in [true, false] {
        let result = update(&paths, &Inputs::default(), trusted, Layer::Project, |text| {
            edit::set(text, "session.max_turns", &json!(0))
        });
        let error = result.unwrap_err().to_string();
        assert!(error.contains("a whole number from 1 to 100000"), "{error}");
    }
    assert!(!paths.project.unwrap().exists());
}

#[test]
fn a_folder_or_foreign_bytes_in_the_place_of_a_file_are_errors_that_name_it() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    let file = paths.user.clone().unwrap();
    fs::create_dir_all(&file).unwrap();
    let error = load_files(&paths, &Inputs::default(), false).unwrap_err().info();
    assert!(error.message.contains("config.toml"), "{error:?}");
    fs::remove_dir(&file).unwrap();
    fs::File::create(&file).unwrap().write_all(b"a = \"\xff\"").unwrap();
    let error = load_files(&paths, &Inputs::default(), false).unwrap_err().info();
    assert!(error.hints[0].contains("UTF-8"), "{error:?}");
}

#[test]
fn links_in_write_roots_are_resolved() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    let real = dir.path().canonicalize().unwrap().join("real");
    fs::create_dir_all(&real).unwrap();
    fs::create_dir_all(&paths.root).unwrap();
    symlink(&real, dir.path().join("link")).unwrap();
    write(paths.user.as_ref().unwrap(), "[permissions]\nwrite_roots = [\"~/link\"]\n");
    let loaded = load_files(&paths, &Inputs::default(), false).unwrap();
    assert_eq!(loaded.rules.write_roots, [paths.root.canonicalize().unwrap(), real]);
}

#[test]
fn what_is_no_ordinary_file_of_a_sensible_size_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    let file = paths.project.clone().unwrap();
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    symlink("/dev/zero", &file).unwrap();
    let error = load_files(&paths, &Inputs::default(), false).unwrap_err().to_string();
    assert!(error.contains("no ordinary file"), "{error}");
    fs::remove_file(&file).unwrap();
    write(&file, &"#".repeat((4 << 20) + 1));
    let error = load_files(&paths, &Inputs::default(), false).unwrap_err().to_string();
    assert!(error.contains("4 MiB"), "{error}");
}
