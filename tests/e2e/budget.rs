//! Budgets: what is counted, what a bound stops, and how a program raises one.

use loon_testkit::{Finished, Home, Input, Loon, ModelServer, Reply, Repo, Running, Wire, text};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::scripts::{ask, bash, chat_setup, read, small_repo};

/// A cent for each token.
const PRICED: &str = "models.coder.price = { input = \"10000\", output = \"10000\" }";

fn priced(server: &ModelServer, budget: &str) -> (Home, Repo) {
    let more = format!("[budget]\n{budget}");
    (Home::with_server_and(server, Wire::Chat, PRICED, &more), small_repo())
}

/// Answers of so many tokens each, calls first.
fn server(tokens: &[u64]) -> ModelServer {
    let last = tokens.len() - 1;
    let reply = |(at, &tokens): (usize, &u64)| {
        let reply = if at == last { text("done") } else { ask(read("a.txt")) };
        reply.usage(tokens, 0, 0)
    };
    ModelServer::by_step(tokens.iter().enumerate().map(reply).collect::<Vec<Reply>>())
}

fn driven(home: &Home, repo: &Repo, arguments: &[&str]) -> Running {
    let arguments = ["--input", "jsonl"].iter().chain(arguments);
    Loon::exec(home, repo.path(), arguments).input(Input::Open).start()
}

fn end(finished: &Finished) -> (Option<i32>, Value) {
    (finished.code, finished.terminal()["error"]["code"].clone())
}

fn last_told(finished: &Finished) -> Value {
    finished.of_type("resources.updated").pop().expect("resources that were told")
}

#[test]
fn k002_k003_k006_the_request_that_spends_the_budget_completes_and_the_next_is_status_3() {
    for (budget, reached) in [
        ("max_usd = \"0.30\"", "the budget of $0.30 is spent ($0.3 used)"),
        ("max_tokens = 25", "the budget of 25 tokens is spent (30 used)"),
        ("max_requests = 1", "the budget of 1 request is spent"),
    ] {
        let server = server(&[30, 30]);
        let (home, repo) = priced(&server, budget);
        let finished = Loon::exec(&home, repo.path(), ["go"]).run();
        assert_eq!(end(&finished), (Some(3), json!("QUOTA_EXCEEDED")), "{budget}");
        assert_eq!(finished.terminal()["error"]["message"], reached);
        assert_eq!(finished.terminal()["cost"]["usd"], "0.3", "it was metered");
        assert_eq!(server.requests().len(), 1);
        assert_eq!(last_told(&finished)["exceeded"], true);
        assert!(finished.of_type("budget.reached").is_empty(), "nobody is there to ask");
        let limit = budget.split_once(" = ").expect("a setting");
        let bounds = &finished.of_type("budget.changed")[0]["bounds"];
        assert!(!bounds[limit.0].is_null(), "{bounds}");
    }
}

#[test]
fn k001_k007_k009_what_is_told_is_what_the_journal_holds_also_after_a_kill() {
    let server = ModelServer::by_step([
        ask(read("a.txt")).usage(20, 0, 5),
        ask(bash("touch began; exec sleep 300")).usage(30, 0, 5),
        text("back again").usage(4, 0, 1),
    ]);
    let (home, repo) = priced(&server, "max_usd = \"100\"");
    let mut running = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).start();
    running.wait_event("the command", |event| {
        event["type"] == "effect.started" && event["target"] == "bash"
    });
    running.signal(Signal::SIGKILL);
    let killed = running.finish();
    let exec = killed.of_type("execution.started")[0]["exec"].as_str().expect("an id").to_owned();
    let told = last_told(&killed);
    assert_eq!(
        (&told["tokens"], &told["cost"]["usd"], &told["count"]),
        (&json!(60), &json!("0.60"), &json!(3))
    );
    assert_eq!((&told["requests"], &told["exceeded"]), (&json!(2), &json!(false)));

    let resumed = Loon::exec(&home, repo.path(), ["--resume", &exec, "go on"]).run();
    assert_eq!(resumed.code, Some(0));
    let first = resumed.of_type("resources.updated").remove(0);
    assert_eq!(
        (&first["tokens"], &first["cost"], &first["requests"]),
        (&json!(60), &told["cost"], &json!(2))
    );
    assert_eq!(first["count"], 4, "the command that was cut off counts");
    let told = last_told(&resumed);
    let ends: Vec<Value> = home
        .records(&exec)
        .into_iter()
        .filter(|record| record["type"] == "effect.finished")
        .collect();
    let sum = |field: &str| ends.iter().filter_map(|end| end[field].as_u64()).sum::<u64>();
    let tokens = |end: &Value| {
        let usage = &end["usage"];
        usage["input_tokens"].as_u64().unwrap_or(0) + usage["output_tokens"].as_u64().unwrap_or(0)
    };
    assert_eq!(told["tokens"], ends.iter().map(tokens).sum::<u64>());
    assert_eq!((&told["ms"], &told["count"]), (&json!(sum("ms")), &json!(ends.len())));
    assert_eq!(told["cost"]["usd"], "0.65");
}

#[test]
fn a_bound_is_raised_while_the_request_waits_and_the_raise_holds_after_a_resume() {
    let server = server(&[30, 30, 30, 30]);
    let (home, repo) = priced(&server, "max_usd = \"0.25\"");
    let mut running = driven(&home, &repo, &[]);
    running.write_line(json!({"type": "prompt", "text": "go"}));
    let reached = running.wait_type("budget.reached")["reached"].clone();
    assert_eq!(reached, json!({"bound": "max_usd", "limit": "0.25", "used": "0.3"}));
    // What is not above the use is refused, with the reason; the question stays open.
    running.write_line(json!({"type": "raise_budget", "max_usd": "0.3"}));
    let notice = running.wait_type("notice");
    let words = "The budget stays as it is: $0.3 is not above the $0.3 already used.";
    assert_eq!(notice["message"], words);
    running.write_line(json!({"type": "raise_budget", "max_usd": "0.65"}));
    let changed = running.wait_event("the raise", |event| {
        event["type"] == "budget.changed" && event["bounds"]["max_usd"] == "0.65"
    });
    assert_eq!(changed["raised"]["max_usd"], "0.65");
    // It goes on to the next bound, where a refusal ends the turn.
    let reached = running.wait_type("budget.reached")["reached"].clone();
    assert_eq!(reached["used"], "0.9");
    running.write_line(json!({"type": "refuse_budget"}));
    assert_eq!(running.wait_type("budget.kept")["decision"], "denied");
    let turn = running.wait_type("turn.finished");
    assert_eq!(
        (&turn["status"], &turn["error"]["code"]),
        (&json!("stopped"), &json!("QUOTA_EXCEEDED"))
    );
    running.close_input();
    let finished = running.finish();
    assert_eq!(end(&finished), (Some(3), json!("QUOTA_EXCEEDED")));
    assert_eq!(server.requests().len(), 3);

    let exec = finished.of_type("execution.started")[0]["exec"].as_str().expect("an id").to_owned();
    let mut resumed = driven(&home, &repo, &["--resume", &exec]);
    let told = resumed.wait_type("resources.updated");
    assert_eq!(told["bounds"]["max_usd"], "0.65", "the raise holds");
    resumed.write_line(json!({"type": "prompt", "text": "more"}));
    resumed.wait_type("budget.reached");
    resumed.write_line(json!({"type": "raise_budget", "max_usd": "5"}));
    assert_eq!(resumed.wait_type("turn.finished")["status"], "completed");
    resumed.close_input();
    assert_eq!(resumed.finish().code, Some(0));
}

#[test]
fn an_interrupt_ends_the_wait_with_status_130_and_the_end_of_input_with_3() {
    let (interrupted, stopped) = ((130, "CANCELLED"), (3, "QUOTA_EXCEEDED"));
    for (how, (code, error)) in
        [("command", interrupted), ("signal", interrupted), ("end of input", stopped)]
    {
        let server = server(&[30, 30]);
        let (home, repo) = priced(&server, "max_tokens = 30");
        let mut running = driven(&home, &repo, &[]);
        running.write_line(json!({"type": "prompt", "text": "go"}));
        running.wait_type("budget.reached");
        match how {
            "command" => running.write_line(json!({"type": "interrupt"})),
            "signal" => running.signal(Signal::SIGINT),
            _ => {}
        }
        if how != "end of input" {
            assert_eq!(running.wait_type("turn.finished")["status"], "interrupted", "{how}");
        }
        running.close_input();
        assert_eq!(end(&running.finish()), (Some(code), json!(error)), "{how}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn settings_that_allow_more_free_who_waits() {
    let server = server(&[30, 30]);
    let (home, repo) = priced(&server, "max_tokens = 30");
    let mut running = driven(&home, &repo, &[]);
    running.write_line(json!({"type": "prompt", "text": "go"}));
    running.wait_type("budget.reached");
    let settings = std::fs::read_to_string(home.settings_path()).expect("settings");
    home.set_settings(&settings.replace("max_tokens = 30", "max_tokens = 300"));
    assert_eq!(running.wait_type("turn.finished")["status"], "completed");
    running.close_input();
    let finished = running.finish();
    assert_eq!(finished.code, Some(0));
    let changed = finished.of_type("budget.changed").pop().expect("new bounds");
    assert_eq!(changed["bounds"]["max_tokens"], 300);
    assert_eq!(changed.get("raised"), None);
}

#[test]
fn the_budget_covers_subagents_and_their_wait_is_the_sessions_question() {
    let order = ("delegate", json!({"agent": "general", "task": "look around"}));
    let server = ModelServer::answering(move |request| {
        let is_child = request.system().contains("You work for another agent");
        match (is_child, request.answers()) {
            (false, 0) => ask(order.clone()).usage(10, 0, 0),
            (true, 0) => ask(read("a.txt")).usage(90, 0, 0),
            (true, _) => text("All is well.").usage(5, 0, 0),
            (false, _) => text("done").usage(5, 0, 0),
        }
    });
    let (home, repo) = priced(&server, "max_tokens = 100");
    let finished = Loon::exec(&home, repo.path(), ["go"]).run();
    assert_eq!(end(&finished), (Some(3), json!("QUOTA_EXCEEDED")));
    assert_eq!(server.requests().len(), 2, "the child spent it");

    let mut running = driven(&home, &repo, &[]);
    running.write_line(json!({"type": "prompt", "text": "go"}));
    let reached = running.wait_type("budget.reached");
    assert!(reached["seq"].is_u64(), "the question is in the journal of the session");
    assert_eq!(reached["reached"]["used"], 100);
    running.write_line(json!({"type": "raise_budget", "max_tokens": 1000, "deadline_ms": 600_000}));
    assert_eq!(running.wait_type("turn.finished")["status"], "completed");
    running.close_input();
    let finished = running.finish();
    assert_eq!(finished.code, Some(0));
    assert_eq!(finished.of_type("budget.reached").len(), 1);
    let told = last_told(&finished);
    assert_eq!((&told["tokens"], &told["requests"]), (&json!(110), &json!(4)));
    assert_eq!(told["bounds"], json!({"max_tokens": 1000, "deadline_ms": 600_000}));
    // Nothing counts twice on the way.
    let totals: Vec<u64> = finished
        .of_type("resources.updated")
        .iter()
        .filter_map(|told| told["tokens"].as_u64())
        .collect();
    assert!(totals.is_sorted(), "{totals:?}");
}

#[test]
fn a_model_without_a_price_under_a_budget_in_dollars_is_said_once() {
    let server = server(&[30, 30]);
    let (home, repo) = chat_setup(&server);
    let arguments = ["--set", "budget.max_usd=0.01", "go"];
    let finished = Loon::exec(&home, repo.path(), arguments).run();
    assert_eq!(finished.code, Some(0));
    let notices = finished.of_type("notice");
    assert_eq!(notices.len(), 1, "{notices:?}");
    let words =
        "A request to lab/coder has no known cost, so the budget of $0.01 does not count it.";
    assert_eq!(notices[0]["message"], words);
    assert_eq!(last_told(&finished)["cost"], json!({"usd": "0", "unpriced": 2}));
}

#[test]
fn a_budget_in_tokens_is_no_empty_promise_where_the_server_reports_none() {
    let server =
        ModelServer::by_step([ask(read("a.txt")).without_usage(), text("done").without_usage()]);
    let (home, repo) = chat_setup(&server);
    let finished = Loon::exec(&home, repo.path(), ["--set", "budget.max_tokens=100", "go"]).run();
    assert_eq!(end(&finished), (Some(3), json!("QUOTA_EXCEEDED")));
    assert_eq!(server.requests().len(), 1);
    let notices = finished.of_type("notice");
    assert_eq!(notices.len(), 1, "{notices:?}");
    let message = notices[0]["message"].as_str().expect("words");
    assert!(message.contains("the budget of 100 tokens counts an estimate"), "{message}");
    let told = last_told(&finished);
    assert_eq!(told["usage"]["estimated_tokens"], told["tokens"]);
    assert!(told["tokens"].as_u64() > Some(100), "{told}");
}

#[test]
fn models_are_listed_with_their_price_and_who_says_so() {
    let home = Home::new();
    home.set_settings(
        "[providers.work]\nkind = \"openai-responses\"\nbase_url = \"https://api.openai.com/v1\"\n\
         models.\"gpt-5-mini\" = {}\nmodels.\"gpt-5\".price = { input = 1, output = 2, reasoning = \"2.5\" }\n\
         [providers.openai]\nkind = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n\
         models.\"gpt-5-mini\" = {}\n",
    );
    let repo = small_repo();
    let listed = Loon::new(&home, repo.path()).args(["models", "list", "--offline"]).run().text();
    let lines: Vec<&str> = listed.lines().collect();
    assert!(
        lines[0].starts_with(
            "work/gpt-5-mini  (settings)  $0.25 in, $0.025 cached, $2 out for a million tokens \
             (api.openai.com, read 20"
        ),
        "{listed}"
    );
    assert_eq!(
        lines[1],
        "work/gpt-5  (settings)  $1 in, $2 out, $2.5 reasoning for a million tokens (settings)"
    );
    assert_eq!(lines[2], "openai/gpt-5-mini  (settings)  price unknown");
}
