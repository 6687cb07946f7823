//! Combos: one model stands in for another, at servers on loopback.

use loon_testkit::{
    Finished, Home, Input, Loon, ModelServer, Reply, Repo, Screen, key, status, text,
};
use serde_json::{Value, json};

use crate::scripts::{ask, read, small_repo};

/// `combo/pair` of `lab/a` and `other/b`, whose input costs one and two dollars a token.
struct Pair {
    first: ModelServer,
    second: ModelServer,
    home: Home,
    repo: Repo,
}

fn pair(first: ModelServer, second: ModelServer, combo: &str) -> Pair {
    let home = Home::new();
    let price = |dollars: u32| format!("price = {{ input = \"{dollars}000000\", output = \"0\" }}");
    home.set_settings(&format!(
        "[providers.lab]\nkind = \"openai-chat\"\nbase_url = \"{}\"\napi_key_env = \"LAB_KEY\"\n\
         [providers.lab.models.a]\ncontext_tokens = 8192\n{}\n\
         [providers.other]\nkind = \"anthropic\"\nbase_url = \"{}\"\n\
         [providers.other.models.b]\ncontext_tokens = 100000\n{}\n\
         [combos.pair]\nmembers = [\"lab/a\", \"other/b\"]\n{combo}\n\
         [session]\nmodel = \"combo/pair\"\n",
        first.base_url(),
        price(1),
        second.base_url(),
        price(2),
    ));
    Pair { first, second, home, repo: small_repo() }
}

impl Pair {
    fn run(&self, arguments: &[&str]) -> Finished {
        Loon::exec(&self.home, self.repo.path(), arguments.iter().copied()).run()
    }

    fn requests(&self) -> (usize, usize) {
        (self.first.requests().len(), self.second.requests().len())
    }

    fn command(&self, arguments: &[&str]) -> Finished {
        Loon::new(&self.home, self.repo.path()).args(arguments.iter().copied()).run()
    }
}

fn always(reply: impl Fn() -> Reply + Send + 'static) -> ModelServer {
    ModelServer::answering(move |_| reply())
}

/// From, to and the code of all reroutes.
fn ways(finished: &Finished) -> Vec<(Value, Value, Value)> {
    finished
        .of_type("effect.rerouted")
        .into_iter()
        .map(|event| (event["from"].clone(), event["to"].clone(), event["error"]["code"].clone()))
        .collect()
}

fn to_second(code: &str) -> (Value, Value, Value) {
    (json!("lab/a"), json!("other/b"), json!(code))
}

const ONCE: &str = "retries = 0";

#[test]
fn what_the_first_cannot_answer_the_second_does() {
    let pair = pair(
        always(|| status(503).message("down")),
        ModelServer::by_step([text("hello").usage(10, 0, 3)]),
        "retries = 1",
    );
    let finished = pair.run(&["go"]);
    assert_eq!(finished.terminal()["message"], "hello");
    assert_eq!(pair.requests(), (2, 1), "one retry, then the next");
    assert_eq!(finished.of_type("effect.retried").len(), 1);
    assert_eq!(ways(&finished), [to_second("OVERLOADED")]);
    let started = &finished.of_type("effect.started")[0];
    assert_eq!(started["target"], "lab/a");
    let turn = &finished.of_type("turn.finished")[0];
    assert_eq!(turn["models"], json!(["other/b"]));
    assert_eq!(finished.of_type("turn.started")[0]["model"], "combo/pair");
    assert_eq!(turn["cost"]["usd"], "20");
}

#[test]
fn both_are_paid_for_each_at_its_own_price() {
    // The first breaks down after it has counted the input.
    let pair = pair(
        ModelServer::answering(|_| {
            loon_testkit::raw([
                "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":0}}\n\n",
                "data: {\"error\":{\"code\":503,\"message\":\"gone\"}}\n\n",
            ])
        }),
        ModelServer::by_step([text("hello").usage(10, 0, 0)]),
        ONCE,
    );
    let finished = pair.run(&["go"]);
    let rerouted = &finished.of_type("effect.rerouted")[0];
    assert_eq!(rerouted["usage"]["input_tokens"], 7, "{rerouted}");
    assert_eq!(rerouted["cost"]["usd"], "7");
    let ended = &finished.of_type("effect.finished")[0];
    assert_eq!(ended["usage"]["input_tokens"], 17);
    assert_eq!(ended["cost"]["usd"], "27");
    assert_eq!(finished.terminal()["cost"]["usd"], "27");
}

#[test]
fn k017_an_open_circuit_skips_the_first_at_once() {
    let pair = pair(always(|| status(503)), always(|| text("hello")), ONCE);
    let mut running =
        Loon::exec(&pair.home, pair.repo.path(), ["--input", "jsonl"]).input(Input::Open).start();
    for _ in 0..7 {
        running.write_line(json!({"type": "prompt", "text": "go"}));
        running.wait_type("turn.finished");
    }
    running.close_input();
    let finished = running.finish();
    assert_eq!(pair.requests(), (5, 7));
    let codes: Vec<Value> = ways(&finished).into_iter().map(|(_, _, code)| code).collect();
    assert_eq!(codes[..5], ["OVERLOADED"; 5]);
    assert_eq!(codes[5..], ["CIRCUIT_OPEN"; 2]);
    let changed = finished.of_type("circuit.changed");
    assert_eq!(changed.len(), 1);
    assert_eq!(
        (&changed[0]["target"], &changed[0]["state"]),
        (&json!("provider:lab"), &json!("open"))
    );
    assert!(changed[0]["until"].is_string() && changed[0].get("seq").is_none());
}

#[test]
fn k017_without_a_combo_an_open_circuit_fails_fast_and_says_until_when() {
    let pair = pair(always(|| status(503)), always(|| text("hello")), ONCE);
    let mut running =
        Loon::exec(&pair.home, pair.repo.path(), ["--input", "jsonl", "--model", "lab/a"])
            .input(Input::Open)
            .start();
    let mut last = Value::Null;
    for _ in 0..3 {
        running.write_line(json!({"type": "prompt", "text": "go"}));
        last = running.wait_type("turn.finished");
    }
    running.close_input();
    running.finish();
    assert_eq!(pair.requests(), (5, 0), "three attempts, then two, then none");
    assert_eq!(last["error"]["code"], "CIRCUIT_OPEN");
    let hint = last["error"]["hints"][0].as_str().expect("a hint");
    assert!(hint.starts_with("the next try is possible in "), "{hint}");
    let message = last["error"]["message"].as_str().expect("a message");
    assert!(message.contains("its last error: scripted status 503"), "{message}");
    assert_eq!(last["cost"], json!({"usd": "0"}));
}

#[test]
fn a_provider_is_left_alone_until_its_own_settings_change() {
    let pair = pair(always(|| status(503)), always(|| text("hello")), ONCE);
    let mut running =
        Loon::exec(&pair.home, pair.repo.path(), ["--input", "jsonl", "--model", "lab/a"])
            .input(Input::Open)
            .start();
    let mut code = |change: Option<(&str, &str)>| {
        if let Some((from, to)) = change {
            let settings = std::fs::read_to_string(pair.home.settings_path()).expect("settings");
            assert!(settings.contains(from));
            pair.home.set_settings(&settings.replace(from, to));
            running.wait_event("the change", |event| {
                event["message"].as_str().is_some_and(|words| words.contains("settings changed"))
            });
        }
        running.write_line(json!({"type": "prompt", "text": "go"}));
        running.wait_type("turn.finished")["error"]["code"].clone()
    };
    code(None);
    code(None);
    let of_another = ("[providers.other]\n", "[providers.other]\nidle_timeout_secs = 9\n");
    let of_its_models = ("context_tokens = 8192", "context_tokens = 8193");
    assert_eq!(code(Some(of_another)), "CIRCUIT_OPEN");
    assert_eq!(code(Some(of_its_models)), "CIRCUIT_OPEN");
    assert_eq!(pair.requests(), (5, 0));
    let its_own = ("[providers.lab]\n", "[providers.lab]\nidle_timeout_secs = 9\n");
    assert_eq!(code(Some(its_own)), "OVERLOADED");
    assert_eq!(pair.requests(), (8, 0));
    running.close_input();
    running.finish();
}

#[test]
fn a_wrong_key_and_a_busy_account_give_way_a_refusal_does_not() {
    let cases = [
        (status(401).message("wrong key"), Some("AUTH")),
        (status(429).retry_after("20"), Some("RATE_LIMITED")),
        (
            status(400).message("This model's maximum context length is 8192 tokens."),
            Some("CONTEXT_OVERFLOW"),
        ),
        (status(400).message("blocked by the content policy"), None),
        (status(400).message("temperature must be 1"), None),
    ];
    for (reply, code) in cases {
        let pair = pair(always(move || reply.clone()), always(|| text("hello")), "");
        let finished = pair.run(&["go"]);
        match code {
            Some(code) => {
                assert_eq!(finished.terminal()["message"], "hello", "{code}");
                assert_eq!(ways(&finished), [to_second(code)]);
                assert_eq!(pair.requests(), (1, 1), "{code}: at once");
            }
            None => {
                assert_eq!(finished.code, Some(1));
                assert_eq!(pair.requests(), (1, 0));
            }
        }
    }
}

#[test]
fn a_turn_stays_with_who_answered_and_a_resume_goes_on() {
    let pair = pair(
        ModelServer::queue([status(503), text("back again")]),
        ModelServer::queue([ask(read("a.txt")), text("three lines")]),
        ONCE,
    );
    let first = pair.run(&["go"]);
    assert_eq!(first.terminal()["message"], "three lines");
    assert_eq!(pair.requests(), (1, 2), "the second step asks the second at once");
    let again = pair.run(&["--continue", "and now?"]);
    assert_eq!(again.terminal()["message"], "back again");
    assert_eq!(again.of_type("turn.started")[0]["model"], "combo/pair");
    assert_eq!(pair.requests(), (2, 2), "the next turn begins with the first");
    let told = pair.first.last_request();
    assert_eq!(told.assistant_texts().last().map(String::as_str), Some("three lines"));
    assert_eq!(again.of_type("turn.finished")[0]["models"], json!(["lab/a"]));
    let verified = pair.command(&["sessions", "verify", "--all"]);
    assert_eq!(verified.code, Some(0), "{}", verified.stderr);
}

#[test]
fn an_answer_that_breaks_twice_goes_to_the_next() {
    let pair =
        pair(always(|| text("half a sen").cut()), ModelServer::by_step([text("whole")]), ONCE);
    let finished = pair.run(&["go"]);
    assert_eq!(finished.terminal()["message"], "whole");
    assert_eq!(pair.requests(), (2, 1));
    assert_eq!(ways(&finished), [to_second("NETWORK")]);
    assert_eq!(finished.items("assistant_message").len(), 1);
}

#[test]
fn a_child_asks_the_combo_too_and_its_parent_hears_of_it() {
    let pair = pair(
        ModelServer::answering(|request| match request.answers() {
            _ if request.system().contains("You work for another agent") => status(503),
            0 => ask(("delegate", json!({"agent": "general", "task": "look"}))),
            _ => text("thanks"),
        }),
        always(|| text("Seen.")),
        ONCE,
    );
    let finished = pair.run(&["go"]);
    assert_eq!(finished.terminal()["message"], "thanks");
    assert_eq!(pair.requests(), (3, 1));
    let notices = finished.of_type("notice");
    let told = notices.iter().filter_map(|notice| notice["message"].as_str());
    let told: Vec<&str> = told.filter(|words| words.contains("Asking other/b instead.")).collect();
    assert!(told[0].starts_with("Agent a1 (general): lab/a gave no answer"), "{told:?}");
}

#[test]
fn members_that_do_not_fit_are_left_out_with_a_reason() {
    let wide = pair(always(|| text("no")), always(|| text("hello")), "min_context = 10000");
    assert_eq!(wide.run(&["go"]).terminal()["message"], "hello");
    assert_eq!(wide.requests(), (0, 1));
    let listed = wide.command(&["models", "list", "--offline"]).text();
    let expected = "combo/pair  (combo)\n  \
                    lab/a  left out: its window of 8192 tokens is smaller than 10000\n  other/b\n";
    assert!(listed.ends_with(expected), "{listed}");

    let none = pair(always(|| text("no")), always(|| text("no")), "needs = [\"vision\"]");
    let finished = none.run(&["go"]);
    assert_eq!((finished.code, none.requests()), (Some(2), (0, 0)));
    let told = format!("{}{}", finished.text(), finished.stderr);
    assert!(told.contains("No member of combo/pair can be used."), "{told}");
    assert!(told.contains("other/b: it is not known to have vision"), "{told}");
}

#[test]
fn a_provider_may_not_be_called_combo() {
    let server = always(|| text("no"));
    let (home, repo) = (Home::new(), small_repo());
    home.set_settings(&format!(
        "[providers.combo]\nkind = \"openai-chat\"\nbase_url = \"{}\"\n",
        server.base_url()
    ));
    let listed = Loon::new(&home, repo.path()).args(["doctor"]).run();
    assert!(listed.text().contains("no provider may be called `combo`"), "{}", listed.text());
}

#[test]
fn the_failover_stands_in_plain_output_and_on_the_screen() {
    let pair = pair(always(|| status(503).message("down")), always(|| text("hello")), ONCE);
    let words = "lab/a gave no answer: down. Asking other/b instead.";
    let plain = pair.command(&["exec", "go"]);
    assert!(plain.stderr.contains(words), "{}", plain.stderr);
    let screen = Screen::start(&pair.home, pair.repo.path(), &[], (100, 30));
    screen.wait_for("● ready");
    screen.paste("go");
    screen.wait_for("go");
    screen.press(key::ENTER);
    screen.wait_for(words);
    screen.wait_for("hello");
    screen.paste("/model");
    screen.wait_for("/model");
    screen.press(key::ENTER);
    screen.wait_until("the combo in use", |contents| {
        contents.lines().any(|line| line.contains("combo/pair") && line.contains("in use"))
    });
}
