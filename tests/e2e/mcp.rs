//! MCP servers through the real `loon`: found by search, called through the gate, started only where
//! somebody may start them.

use std::path::PathBuf;

use loon_testkit::{
    Finished, Home, Input, Loon, ModelServer, Reply, Repo, Screen, Wire, call, key, text,
};
use serde_json::{Value, json};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/loon-mcp/tests/server.py");

/// A home with a server `lab` of these flags, and more settings.
fn home(model: &ModelServer, flags: &[&str], more: &str) -> Home {
    let words: Vec<String> =
        ["python3", SERVER].iter().chain(flags).map(|word| format!("{word:?}")).collect();
    let lab = format!("[mcp.lab]\ncommand = [{}]\n{more}\n", words.join(", "));
    Home::with_server_and(model, Wire::Chat, "", &lab)
}

fn exec(home: &Home, repo: &Repo, arguments: &[&str]) -> Finished {
    let arguments = arguments.iter().chain(&["go"]);
    Loon::exec(home, repo.path(), arguments).run()
}

fn answers(run: &Finished) -> Vec<String> {
    let items = run.items("tool_call");
    items.iter().filter_map(|item| Some(item["result"]["text"].as_str()?.to_owned())).collect()
}

fn search(query: &str) -> Reply {
    call("tool_search", json!({"query": query}))
}

fn echo(words: &str) -> Reply {
    call("mcp__lab__echo", json!({"text": words}))
}

fn remote(request: &loon_testkit::Request) -> Vec<String> {
    request.tool_names().into_iter().filter(|name| name.starts_with("mcp__")).collect()
}

#[test]
fn h051_h052_remote_tools_load_by_search_and_three_hundred_of_them_cost_a_request_nothing() {
    let script = || [search("echo"), echo("hello"), search(""), text("done")];
    let sizes: Vec<usize> = [0, 300]
        .into_iter()
        .map(|tools| {
            let model = ModelServer::by_step(script());
            let flags = ["--tools".to_owned(), tools.to_string()];
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            let home = home(&model, &flags, "");
            let repo = Repo::new(&[("a.txt", "one\n")]);
            let run = exec(&home, &repo, &["--mode", "bypass"]);
            assert_eq!(run.code, Some(0), "{}", run.stderr);
            let told = answers(&run);
            assert!(told[0].starts_with("Loaded"), "{told:?}");
            assert!(told[0].contains("mcp__lab__echo: [MCP server lab] Says it again."));
            assert_eq!(told[1], "hello");
            assert!(told[2].contains("mcp__lab__echo (loaded): "), "{}", told[2]);
            let requests = model.requests();
            assert_eq!(remote(&requests[0]), [""; 0]);
            assert_eq!(remote(&requests[1]), ["mcp__lab__echo"]);
            assert!(requests[0].system().contains("MCP servers, whose tools tool_search finds"));
            assert_eq!(remote(&requests[2]), remote(&requests[1]));
            let tools = |at: usize| requests[at].body["tools"].to_string().len();
            tools(0) + tools(2)
        })
        .collect();
    assert_eq!(sizes[0], sizes[1]);
}

#[test]
fn h053_a_server_that_a_rule_denies_is_in_no_request_and_in_no_search() {
    let rule = "[[permissions.deny_rules]]\ntool = \"mcp__lab__*\"\n";
    let model = ModelServer::by_step([search("echo"), echo("hello"), text("done")]);
    let home = home(&model, &[], rule);
    let repo = Repo::new(&[("a.txt", "one\n")]);
    let run = exec(&home, &repo, &["--mode", "bypass"]);
    let told = answers(&run);
    assert!(told[0].starts_with("No tool matches"), "{told:?}");
    assert!(told[1].contains("permission denied"), "{told:?}");
    assert!(model.requests().iter().all(|request| remote(request).is_empty()));
}

#[test]
fn h054_a_call_asks_unless_a_rule_allows_it_and_plan_mode_has_none() {
    let repo = Repo::new(&[("a.txt", "one\n")]);
    let script = || [echo("hello"), text("done")];
    let status = |rules: &str, mode: &str| {
        let model = ModelServer::by_step(script());
        let home = home(&model, &[], rules);
        let run = exec(&home, &repo, &["--mode", mode]);
        run.items("tool_call").last().expect("a call")["status"].clone()
    };
    assert_eq!(status("", "default"), "denied");
    assert_eq!(status("", "auto"), "denied");
    let rule = |tool: &str| format!("[[permissions.allow_rules]]\ntool = \"{tool}\"\n");
    assert_eq!(status(&rule("mcp__lab__echo"), "default"), "done");
    assert_eq!(status(&rule("mcp__lab__*"), "default"), "done");
    assert_eq!(status(&rule("mcp__lab__fail"), "default"), "denied");
    assert_eq!(status(&rule("mcp__lab__*"), "plan"), "denied");
}

#[test]
fn loaded_tools_are_there_again_after_a_resume() {
    let model = ModelServer::by_step([search("echo"), text("one"), echo("again"), text("two")]);
    let home = home(&model, &[], "");
    let repo = Repo::new(&[("a.txt", "one\n")]);
    let first = exec(&home, &repo, &["--mode", "bypass"]);
    let exec_id = first.exec();
    let second = exec(&home, &repo, &["--mode", "bypass", "--resume", &exec_id]);
    assert_eq!(answers(&second).last().map(String::as_str), Some("again"));
}

#[test]
fn h168_children_inherit_remote_tools_as_far_as_their_profile_goes() {
    let profile = "---\nname: reader\ndescription: reads\ntools: [read, tool_search, mcp__lab__echo]\n---\nRead.\n";
    let model = ModelServer::answering(|request| {
        let is_child = request.system().contains("You work for another agent");
        match (is_child, request.answers()) {
            (false, 0) => call("delegate", json!({"agent": "reader", "task": "look"})),
            (true, 0) => search("lab"),
            (true, 1) => echo("from the child"),
            (true, 2) => call("mcp__lab__env", json!({})),
            _ => text("done"),
        }
    });
    let home = home(&model, &[], "");
    let repo = Repo::new(&[(".loon/agents/reader.md", profile)]);
    let run = exec(&home, &repo, &["--mode", "bypass"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let requests = model.requests();
    let mut of_child =
        requests.iter().filter(|request| request.system().contains("You work for another"));
    let child = of_child.next_back().expect("requests of the child");
    assert_eq!(remote(child), ["mcp__lab__echo"]);
    let told: Vec<String> = child.tool_answers().into_iter().map(|answer| answer.text).collect();
    assert_eq!(told[1], "from the child");
    assert!(told[2].contains("There is no tool `mcp__lab__env`"), "{told:?}");
}

#[test]
fn a_projects_servers_are_not_started_before_the_folder_is_trusted() {
    let model = ModelServer::by_step([search("echo"), text("done")]);
    let home = Home::with_server(&model, Wire::Chat);
    let started = |repo: &Repo| repo.path().join("started").exists();
    let servers = json!({"mcpServers": {"theirs": {
        "command": "python3", "args": [SERVER, "--starts", "started"], "env": {"A": "${NO_SUCH:-x}"}
    }}});
    let repo = Repo::new(&[(".mcp.json", &servers.to_string())]);
    let run = exec(&home, &repo, &["--mode", "bypass"]);
    assert!(answers(&run)[0].starts_with("No tool matches"), "{:?}", answers(&run));
    assert!(!started(&repo), "a server of an untrusted folder was started");
    let notices: Vec<Value> = run.of_type("notice");
    let told = |words: &str| {
        notices.iter().any(|it| it["message"].as_str().is_some_and(|it| it.contains(words)))
    };
    assert!(told("no effect until you run `loon trust`"), "{notices:?}");
    let trusted = Loon::new(&home, repo.path()).args(["trust"]).run();
    assert!(trusted.text().contains(".mcp.json"), "{}", trusted.text());
    let model = ModelServer::by_step([search("echo"), text("done")]);
    home.set_settings(&format!(
        "[providers.lab]\nkind = \"openai-chat\"\nbase_url = \"{}\"\napi_key_env = \"LAB_KEY\"\n\
         [session]\nmodel = \"lab/coder\"\n",
        model.base_url()
    ));
    let run = exec(&home, &repo, &["--mode", "bypass"]);
    assert!(answers(&run)[0].contains("mcp__theirs__echo"), "{:?}", answers(&run));
    assert!(started(&repo));
}

#[test]
fn a_server_that_is_not_there_holds_nothing_up_and_is_told_once() {
    let model = ModelServer::by_step([text("at once"), search("x"), search("y"), text("done")]);
    let home = home(
        &model,
        &["--dead"],
        "warm = true\n[mcp.hangs]\ncommand = [\"sleep\", \"1000\"]\nstartup_timeout_secs = 1\n",
    );
    let repo = Repo::new(&[("a.txt", "one\n")]);
    let mut run = Loon::exec(&home, repo.path(), ["--mode", "bypass", "--input", "jsonl"])
        .input(Input::Open)
        .start();
    run.write_line(json!({"type": "prompt", "text": "one"}));
    run.wait_type("turn.finished");
    run.write_line(json!({"type": "prompt", "text": "two"}));
    run.wait_type("turn.finished");
    run.write_line(json!({"type": "list_mcp"}));
    let listed = run.wait_type("mcp.listed");
    let servers = listed["servers"].as_array().expect("servers");
    assert_eq!(
        (servers[0]["state"].clone(), servers[1]["state"].clone()),
        (json!("failed"), json!("failed"))
    );
    assert!(servers[0]["stderr"].as_str().is_some_and(|said| said.contains("ModuleNotFoundError")));
    run.close_input();
    let run = run.finish();
    let about_lab = run.of_type("notice").into_iter().filter(|notice| {
        notice["message"]
            .as_str()
            .is_some_and(|words| words.starts_with("The MCP server lab is not"))
    });
    assert_eq!(about_lab.count(), 1);
    let told = answers(&run);
    assert!(told[0].contains("[server lab is not there: "), "{told:?}");
}

#[test]
fn the_command_line_lists_servers_and_tests_one() {
    let model = ModelServer::by_step([]);
    let home = home(
        &model,
        &["--bad"],
        "[mcp.dead]\ncommand = [\"python3\", \"-c\", \"raise SystemExit('no luck')\"]\n",
    );
    let repo = Repo::new(&[("a.txt", "one\n")]);
    let loon = |arguments: &[&str]| Loon::new(&home, repo.path()).args(arguments.iter()).run();
    let list = loon(&["mcp", "list"]);
    assert_eq!(list.code, Some(0), "{}", list.stderr);
    assert!(list.text().contains("lab") && list.text().contains("ready"), "{}", list.text());
    assert!(list.text().contains("| no luck"), "{}", list.text());
    let test = loon(&["mcp", "test", "lab"]);
    assert_eq!(test.code, Some(0));
    assert!(
        test.text().contains("  ! text: its arguments are no object; left out\n"),
        "{}",
        test.text()
    );
    assert!(
        test.text().contains("mcp__lab__echo  [MCP server lab] Says it again."),
        "{}",
        test.text()
    );
    let json = loon(&["mcp", "test", "dead", "--json"]);
    assert_eq!(json.code, Some(1));
    let told: Value = serde_json::from_str(json.text().trim()).expect("one object");
    assert_eq!((told["name"].as_str(), told["state"].as_str()), (Some("dead"), Some("failed")));
    let unknown = loon(&["mcp", "test", "nobody"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("There are: lab, dead"), "{}", unknown.stderr);
}

#[test]
fn the_rest_of_a_long_result_can_be_read_without_a_question() {
    let model = ModelServer::answering(|request| match request.answers() {
        0 => call("mcp__lab__big", json!({})),
        1 => {
            let told = request.last_answer();
            let path = told.split("are in ").nth(1).and_then(|rest| rest.split(": read").next());
            call("grep", json!({"pattern": "^row 150000$", "path": path}))
        }
        _ => text("done"),
    });
    let rule = "[[permissions.allow_rules]]\ntool = \"mcp__lab__*\"\n";
    let home = home(&model, &[], rule);
    let repo = Repo::new(&[("a.txt", "one\n")]);
    let run = exec(&home, &repo, &["--mode", "default"]);
    let told = answers(&run);
    assert!(told[1].contains("row 150000"), "{}", told[1]);
}

/// Where servers of others lie that the check of a change installs; see `.ci/run`.
fn installed() -> Option<PathBuf> {
    let folder = std::env::var_os("LOON_MCP_SERVERS").map(PathBuf::from);
    let must = std::env::var_os("CI").is_some();
    assert!(!must || folder.is_some(), "LOON_MCP_SERVERS is not set; run .ci/run");
    folder
}

/// Settings of one real server, a prompt that needs no words, and the answers of its calls.
fn with_real(settings: &str, replies: Vec<Reply>) -> Vec<String> {
    let model = ModelServer::by_step(replies);
    let home = Home::with_server_and(&model, Wire::Chat, "", settings);
    let repo = Repo::new(&[("a.txt", "first line\n")]);
    let run = exec(&home, &repo, &["--mode", "bypass"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    answers(&run)
}

#[test]
fn h230_servers_of_others_are_used_on_standard_input_and_output() {
    let Some(folder) = installed() else { return };
    let bin = |name: &str| folder.join("node_modules/.bin").join(name).display().to_string();
    let node = format!("env = {{ PATH = \"{}/bin:${{PATH}}\" }}\n", folder.display());
    let everything = with_real(
        &format!(
            "[mcp.every]\ncommand = [\"{}\", \"stdio\"]\n{node}",
            bin("mcp-server-everything")
        ),
        vec![
            call("mcp__every__echo", json!({"message": "hello"})),
            call("mcp__every__list_prompts", json!({})),
            call("mcp__every__list_resource_templates", json!({})),
            text("done"),
        ],
    );
    assert!(everything[0].contains("hello"), "{everything:?}");
    assert!(everything[1].contains("prompt") && everything[2].contains("://"), "{everything:?}");
    let files = with_real(
        &format!("[mcp.files]\ncommand = [\"{}\", \".\"]\n{node}", bin("mcp-server-filesystem")),
        vec![call("mcp__files__read_text_file", json!({"path": "a.txt"})), text("done")],
    );
    assert!(files[0].contains("first line"), "{files:?}");
    let memory = with_real(
        &format!("[mcp.memory]\ncommand = [\"{}\"]\n{node}", bin("mcp-server-memory")),
        vec![
            call(
                "mcp__memory__create_entities",
                json!({"entities": [
                    {"name": "loom", "entityType": "tool", "observations": ["weaves"]}
                ]}),
            ),
            call("mcp__memory__search_nodes", json!({"query": "weaves"})),
            text("done"),
        ],
    );
    assert!(memory[1].contains("loom"), "{memory:?}");
}

#[test]
fn h230_a_server_of_pythons_framework_is_used() {
    let Some(folder) = installed() else { return };
    let python = folder.join("venv/bin/python").display().to_string();
    let code = "from fastmcp import FastMCP\nm = FastMCP('probe')\n@m.tool\ndef add(a: int, b: int) -> int:\n    'Add'\n    return a + b\nm.run(show_banner=False)\n";
    let code = serde_json::to_string(code).expect("text");
    let told = with_real(
        &format!("[mcp.fast]\ncommand = [\"{python}\", \"-c\", {code}]\n"),
        vec![call("mcp__fast__add", json!({"a": 2, "b": 40})), text("done")],
    );
    assert_eq!(told[0], "42");
}

/// The server of others over HTTP listens on every interface, so it gets a network of its own where the
/// system lets us make one.
#[test]
fn h230_a_server_of_others_is_used_over_http() {
    let Some(folder) = installed() else { return };
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let home = Home::new();
    home.set_settings(&format!("[mcp.web]\nurl = \"http://127.0.0.1:{port}/mcp\"\n"));
    let variables: Vec<String> = home
        .env()
        .into_iter()
        .map(|(name, value)| format!("{}='{}'", name.display(), value.display()))
        .collect();
    let inside = format!(
        "PATH={0}/bin:$PATH PORT={port} {0}/node_modules/.bin/mcp-server-everything streamableHttp >/dev/null 2>&1 & server=$!; \
         until (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null; do kill -0 $server || exit 9; sleep 0.1; done; \
         env {1} {2} mcp test web; status=$?; kill $server; exit $status",
        folder.display(),
        variables.join(" "),
        loon_testkit::loon_binary().display(),
    );
    let script = home.path().join("inside.sh");
    std::io::Write::write_all(
        &mut std::fs::File::create(&script).expect("a script"),
        inside.as_bytes(),
    )
    .expect("a script");
    let line = format!(
        "if unshare -rn sh -c 'ip link set lo up' 2>/dev/null; \
         then exec unshare -rn sh -c 'ip link set lo up; exec bash {0}'; else exec bash {0}; fi",
        script.display()
    );
    let (status, said) = shell(&line);
    assert!(status && said.contains("mcp__web__echo"), "{said}");
}

#[test]
fn the_protocols_own_client_scenarios_pass() {
    let Some(folder) = installed() else { return };
    let client = example("conformance");
    for scenario in ["initialize", "tools_call", "sse-retry"] {
        let out = tempfile::tempdir().expect("a folder");
        let line = format!(
            "PATH={0}/bin:$PATH {0}/node_modules/.bin/conformance client --command {1} --scenario {scenario} -o {2}",
            folder.display(),
            client.display(),
            out.path().display()
        );
        let (status, said) = shell(&line);
        assert!(status, "{scenario}: {said}");
    }
}

/// The built example of that name.
#[expect(clippy::disallowed_methods, reason = "Cargo builds what the test starts")]
fn example(name: &str) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = std::process::Command::new(cargo)
        .args([
            "build",
            "--workspace",
            "--example",
            name,
            "--message-format",
            "json-render-diagnostics",
        ])
        .output()
        .expect("Cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .expect("Cargo names the example it built")
}

#[expect(clippy::disallowed_methods, reason = "a program of others, in a test")]
fn shell(line: &str) -> (bool, String) {
    let output = std::process::Command::new("sh").args(["-c", line]).output().expect("a shell");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn the_screen_shows_the_servers() {
    let model = ModelServer::by_step([]);
    let home = home(&model, &[], "warm = true\n");
    let repo = Repo::new(&[("a.txt", "one\n")]);
    let mut screen = Screen::start(&home, repo.path(), &[], (100, 30));
    screen.wait_for("● ready");
    screen.paste("/mcp");
    screen.wait_for("/mcp");
    screen.press(key::ENTER);
    let shown = screen.wait_for("server.py");
    assert!(shown.contains("mcp servers") && shown.contains("lab"), "{shown}");
    screen.press(key::ESCAPE);
    screen.press(key::CTRL_C);
    screen.press(key::CTRL_C);
    assert_eq!(screen.wait_exit(), Some(0));
}
