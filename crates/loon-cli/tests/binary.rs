//! The built command answers. That this test needs the binary also makes `cargo test --workspace`
//! build it, with the features of the whole workspace, for the end-to-end tests.

#[test]
#[expect(clippy::disallowed_methods, reason = "a test that starts the command itself")]
fn the_command_tells_its_version() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_loon")).arg("--version").output();
    let output = output.unwrap();
    assert!(output.status.success());
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        concat!("loon ", env!("CARGO_PKG_VERSION"), "\n")
    );
}
