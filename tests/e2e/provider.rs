//! What happens when a model server misbehaves.

use loon_testkit::{
    Finished, Home, Loon, ModelServer, Reply, Wire, document, hang_up, raw, silence, status, text,
};
use serde_json::{Value, json};

use crate::scripts::{ask, bash, chat_setup, read, small_repo, write};

fn run(wire: Wire, replies: impl IntoIterator<Item = Reply>) -> (ModelServer, Finished) {
    let server = ModelServer::queue(replies);
    let (home, repo) = (Home::with_server(&server, wire), small_repo());
    let finished = Loon::exec(&home, repo.path(), ["go"]).run();
    (server, finished)
}

fn retries(finished: &Finished) -> Vec<(Value, Value)> {
    finished
        .of_type("effect.retried")
        .into_iter()
        .map(|event| (event["error"]["code"].clone(), event["delay_ms"].clone()))
        .collect()
}

fn error_code(finished: &Finished) -> Value {
    finished.terminal()["error"]["code"].clone()
}

#[test]
fn too_many_requests_waits_as_long_as_the_server_says() {
    let (server, finished) = run(Wire::Chat, [status(429).retry_after("1"), text("ok")]);
    assert_eq!(finished.terminal()["outcome"], "completed");
    assert_eq!(retries(&finished), [(json!("RATE_LIMITED"), json!(1000))]);
    assert_eq!(server.requests()[0].bytes, server.requests()[1].bytes);
}

#[test]
fn a_wait_that_is_too_long_is_told_and_not_slept_through() {
    let (server, finished) = run(Wire::Chat, [status(429).retry_after("3600")]);
    assert_eq!(finished.code, Some(1));
    assert_eq!(error_code(&finished), "RATE_LIMITED");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn an_overloaded_server_is_tried_three_times_in_all() {
    let busy = || status(529).message("busy");
    let (server, finished) = run(Wire::Messages, [busy(), busy(), busy()]);
    assert_eq!(error_code(&finished), "OVERLOADED");
    assert_eq!(server.requests().len(), 3);
    let codes: Vec<Value> = retries(&finished).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, ["OVERLOADED", "OVERLOADED"]);
}

#[test]
fn an_error_inside_a_stream_is_that_error() {
    for wire in Wire::ALL {
        let early = silence().error_event("overloaded_error", "busy");
        let (_, finished) = run(wire, [early, text("ok")]);
        assert_eq!(finished.terminal()["message"], "ok", "{wire:?}");
        assert_eq!(retries(&finished).len(), 1);

        let late = || text("Hel").error_event("overloaded_error", "busy");
        let (server, finished) = run(wire, [late(), late()]);
        assert_eq!(error_code(&finished), "OVERLOADED", "{wire:?}");
        assert_eq!(server.requests().len(), 2, "asked anew once, with the piece dropped");
        assert_eq!(retries(&finished), [], "the request itself is not repeated");
        assert_eq!(finished.of_type("item.dropped").len(), 1);
        let kept = finished.items("assistant_message");
        assert_eq!((kept.len(), &kept[0]["incomplete"]), (1, &json!(true)));
    }
}

#[test]
fn a_stream_that_breaks_or_lacks_its_end_runs_no_call() {
    for wire in Wire::ALL {
        for end in [Reply::cut, Reply::end_early] {
            let (name, arguments) = bash("touch ran.txt");
            let broken = || end(text("so").call(name, &arguments));
            let server = ModelServer::queue([broken(), broken()]);
            let (home, repo) = (Home::with_server(&server, wire), small_repo());
            let finished = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).run();
            assert_eq!(finished.code, Some(1), "{wire:?}");
            let code = error_code(&finished);
            assert!(code == "NETWORK" || code == "PROTOCOL", "{wire:?}: {code}");
            assert!(!repo.has("ran.txt"));
        }
    }
}

#[test]
fn a_connection_that_breaks_before_any_output_is_tried_again() {
    let (server, finished) = run(Wire::Responses, [hang_up(), silence().cut(), text("ok")]);
    assert_eq!(finished.terminal()["message"], "ok");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn an_answer_that_broke_is_asked_for_anew() {
    for wire in Wire::ALL {
        let (server, finished) = run(wire, [text("half a sen").cut(), text("whole")]);
        assert_eq!(finished.terminal()["message"], "whole", "{wire:?}");
        assert_eq!(finished.items("assistant_message").len(), 1);
        assert_eq!(server.last_request().assistant_texts(), [""; 0]);
    }
}

#[test]
fn a_conversation_goes_on_after_a_broken_answer() {
    for wire in Wire::ALL {
        let server =
            ModelServer::queue([text("half a").cut(), text("half a sen").cut(), text("whole")]);
        let (home, repo) = (Home::with_server(&server, wire), small_repo());
        assert_eq!(Loon::exec(&home, repo.path(), ["go"]).run().code, Some(1));
        let again = Loon::exec(&home, repo.path(), ["--continue", "go on"]).run();
        assert_eq!(again.terminal()["message"], "whole", "{wire:?}");
    }
}

#[test]
fn nobody_at_home_is_a_network_error_that_names_the_place() {
    let (home, repo) = (Home::new(), small_repo());
    home.set_settings(
        "[providers.lab]\nkind = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n\
         [session]\nmodel = \"lab/coder\"\n",
    );
    let finished = Loon::exec(&home, repo.path(), ["go"]).run();
    assert_eq!(error_code(&finished), "NETWORK");
    assert!(finished.text().contains("127.0.0.1:9"), "{}", finished.text());
}

#[test]
fn no_call_of_an_answer_that_was_cut_at_its_limit_runs() {
    for wire in Wire::ALL {
        let server = ModelServer::answering(|_| ask(write("part.txt", "first")).length_stop());
        let (home, repo) = (Home::with_server(&server, wire), small_repo());
        let finished = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).run();
        assert_eq!(finished.code, Some(3), "{wire:?}");
        assert_eq!(error_code(&finished), "OUTPUT_LIMIT");
        assert!(!repo.has("part.txt"));
        let requests = server.requests();
        assert_eq!(requests.len(), 3, "two more tries");
        assert!(requests[1].last_answer().contains("output limit"), "{:?}", requests[1].body);
    }
}

#[test]
fn a_refusal_ends_the_turn_and_is_not_tried_again() {
    for wire in [Wire::Chat, Wire::Messages] {
        let (server, finished) = run(wire, [text("I will not").refused()]);
        assert_eq!(error_code(&finished), "REFUSED", "{wire:?}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_conversation_too_long_for_the_window_is_named_so() {
    let words = [
        (Wire::Chat, "This model's maximum context length is 8192 tokens."),
        (Wire::Responses, "Your input exceeds the context window of this model."),
        (Wire::Messages, "prompt is too long: 210000 tokens > 200000 maximum"),
    ];
    for (wire, message) in words {
        let (server, finished) = run(wire, [status(400).message(message)]);
        assert_eq!(error_code(&finished), "CONTEXT_OVERFLOW", "{wire:?}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_wrong_request_is_final_and_told_in_the_server_s_words() {
    let (server, finished) = run(Wire::Chat, [status(400).message("temperature must be 1")]);
    assert_eq!(error_code(&finished), "INVALID");
    let told = finished.terminal()["error"]["message"].to_string();
    assert!(told.contains("temperature must be 1"), "{told}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_silent_stream_is_given_up_after_the_idle_limit() {
    for stall in [silence().stall(), text("begun").stall()] {
        let replies = std::iter::repeat_n(stall, 3);
        let server = ModelServer::queue(replies);
        let home = Home::with_server_and(&server, Wire::Chat, "idle_timeout_secs = 1", "");
        let finished = Loon::exec(&home, small_repo().path(), ["go"]).run();
        assert_eq!(error_code(&finished), "NETWORK");
        server.wait_abandoned(0);
    }
}

#[test]
fn events_that_are_no_json_and_pages_that_are_no_stream_are_protocol_errors() {
    let garbage = || {
        raw(["data: {\"choices\": [{\"delta\": {\"content\": \"Hi\"}}]}\n\n", "data: {oops\n\n"])
    };
    let (_, finished) = run(Wire::Chat, [garbage(), garbage()]);
    assert_eq!(error_code(&finished), "PROTOCOL");
    let page = || document("text/html", "<html>Welcome to the proxy</html>");
    let (_, finished) = run(Wire::Chat, [page(), page(), page()]);
    assert_eq!(error_code(&finished), "PROTOCOL");
}

#[test]
fn null_members_comments_and_odd_line_ends_are_normal() {
    let stream = raw([
        "\u{feff}: hello\r\n\r\nevent: message\r\ndata:{\"choices\":[{\"delta\":{\"content\":\"A\"}}],\"usage\":null}\r\n\r\n",
        ":\n\ndata: {\"choices\":[{\"delta\":\ndata: {\"content\":\"B\",\"tool_calls\":null}}]}\n\n",
        "id: 7\nretry: 10\ndata: {\"choices\":[{\"delta\":{\"content\":\"C\"},\"finish_reason\":\"stop\"}]}\r\r",
        "data: {\"choices\":null,\"usage\":null}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"prompt_tokens_details\":null}}\n\n",
        "data: [DONE]\n\n",
    ]);
    let (_, finished) = run(Wire::Chat, [stream]);
    let end = finished.terminal();
    assert_eq!(end["message"], "ABC", "{end}");
    assert_eq!(
        (&end["usage"]["input_tokens"], &end["usage"]["output_tokens"]),
        (&json!(5), &json!(2))
    );
}

#[test]
fn a_blank_text_before_a_call_is_not_sent_back() {
    for wire in Wire::ALL {
        let (name, arguments) = read("a.txt");
        let server = ModelServer::by_step([text("\n\n").call(name, &arguments), text("ok")]);
        let (home, repo) = (Home::with_server(&server, wire), small_repo());
        let end = Loon::exec(&home, repo.path(), ["go"]).run().terminal();
        assert_eq!(end["message"], "ok", "{wire:?}");
    }
}

#[test]
fn unreported_usage_and_unknown_prices_stay_unknown() {
    let (_, finished) = run(Wire::Chat, [text("ok").without_usage()]);
    let end = finished.terminal();
    assert_eq!(end["usage"].get("input_tokens"), None, "{end}");
    let (_, finished) = run(Wire::Chat, [text("ok")]);
    assert_eq!(finished.terminal()["cost"]["unpriced"], 1);
}

#[test]
fn a_price_in_the_settings_is_charged_to_the_cent_and_beyond() {
    let server = ModelServer::queue([text("ok").usage(1_000_000, 400_000, 10)]);
    let price =
        "[providers.lab.models.coder.price]\ninput = \"3\"\ncached = \"0.3\"\noutput = \"15\"\n";
    let home = Home::with_server_and(&server, Wire::Chat, price, "");
    let end = Loon::exec(&home, small_repo().path(), ["go"]).run().terminal();
    let usd: f64 = end["cost"]["usd"].as_str().and_then(|usd| usd.parse().ok()).expect("dollars");
    assert!((usd - 1.920_15).abs() < 1e-9, "{end}");
}

#[test]
fn models_are_listed_and_tested() {
    let server = ModelServer::queue([text("pong")]);
    let (home, repo) = chat_setup(&server);
    let listed = Loon::new(&home, repo.path()).args(["models", "list"]).run();
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    assert!(listed.text().contains("lab/coder"), "{}", listed.text());
    assert_eq!(server.list_requests(), 1);
    let tested = Loon::new(&home, repo.path()).args(["models", "test"]).run();
    assert_eq!(tested.code, Some(0), "{}", tested.stderr);
    assert_eq!(server.requests().len(), 1);
}
