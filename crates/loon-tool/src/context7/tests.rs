//! Context7 against a server on loopback: what is shown, what goes wrong, and that keys stay out.

use std::time::Duration;

use loon_api::EffectKey;
use loon_exec::Spawner;
use loon_kernel::NativeTool;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::context7_query_docs::QueryDocs;
use crate::context7_resolve_library::ResolveLibrary;
use crate::context7_search::Search;
use crate::fixture::Fixture;
use crate::web::server::{Reply, Server, fixed, options};
use crate::{Environment, native_tools};

const KEY: &str = "ctx7sk-hush";

fn context(cancel: &CancellationToken) -> EffectContext {
    let (progress, _told) = mpsc::channel(8);
    EffectContext {
        hidden: [].into(),
        subjects: Arc::default(),
        key: EffectKey::call(1, 0, 0),
        cancel: cancel.clone(),
        progress,
    }
}

async fn run<T: NativeTool>(tool: &T, arguments: Value) -> ToolOutput {
    let args = serde_json::from_value(arguments).unwrap();
    tool.run(args, &context(&CancellationToken::new())).await
}

fn libraries_answer() -> String {
    json!({"results": [
        {"id": "/tokio-rs/axum", "title": "axum", "description": "Web\nframework ".repeat(40),
         "totalSnippets": 120, "trustScore": 7.5, "benchmarkScore": -1, "stars": 20000,
         "versions": ["v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8"]},
        {"id": "/other/axum", "title": "Axum", "trustScore": 9},
        {"id": "/x/axum-extra", "versions": null},
        {"id": "/y/axum", "title": "Helpers"},
        {"title": "no id"}, "nonsense",
    ], "searchFilterApplied": false})
    .to_string()
}

#[tokio::test]
async fn search_lists_what_there_is() {
    let server = Server::start(|_, _| Reply::page("application/json", libraries_answer())).await;
    let tool = Search::new(fixed(options(Some(KEY), &format!("{}/", server.base))));
    let output = run(&tool, json!({"query": " web framework & more "})).await;
    let text = &output.result.text;
    assert!(!output.result.is_error);
    assert!(text.starts_with("/tokio-rs/axum - axum\n  Web\u{240a}framework "), "{text}");
    assert!(text.contains("\n  snippets 120, trust 7.5, stars 20000\n"), "{text}");
    assert!(text.contains("\n  versions: v1, v2, v3, v4, v5, v6 and 2 more\n"), "{text}");
    assert!(text.ends_with("/other/axum - Axum\n  trust 9\n/x/axum-extra\n/y/axum - Helpers\n"));
    assert_eq!(output.summary, "4 libraries");
    let head = &server.heads()[0];
    let line = "GET /api/v2/libs/search?libraryName=web+framework+%26+more&query=web+framework+%26+more HTTP";
    assert!(head.starts_with(line), "{head}");
    assert!(head.contains("authorization: Bearer ctx7sk-hush\r\n"));
}

#[tokio::test]
async fn resolve_puts_the_best_first_and_says_why() {
    let server = Server::start(|path, _| {
        Reply::page(
            "application/json",
            if path.contains("nothing") { "[]".to_owned() } else { libraries_answer() },
        )
    })
    .await;
    let tool = ResolveLibrary::new(fixed(options(Some(KEY), &server.base)));
    let output = run(&tool, json!({"name": "AXUM", "topic": "routing"})).await;
    let text = &output.result.text;
    assert!(text.starts_with("/other/axum - Axum\n  its name is the same; trust 9\n"), "{text}");
    assert!(text.contains("\n/tokio-rs/axum - axum\n  its name is the same; snippets 120,"));
    assert!(text.ends_with("/y/axum - Helpers\n  its repository has the name\n"), "{text}");
    assert_eq!(output.summary, "/other/axum");
    assert!(
        server.heads()[0].starts_with("GET /api/v2/libs/search?libraryName=AXUM&query=routing ")
    );
    let by_id = run(&tool, json!({"name": "x/axum-extra"})).await.result.text;
    assert!(by_id.starts_with("/x/axum-extra\n  this is its id\n"), "{by_id}");
    let nothing = run(&tool, json!({"name": "nothing"})).await.result;
    assert_eq!(nothing.text, "No library called nothing. Try context7_search with what it does.");
}

#[tokio::test]
async fn documentation_is_cut_between_its_pieces() {
    const BETWEEN: &str = "\n--------------------------------\n";
    let server = Server::start(|path, _| {
        let words = if path.contains("none") {
            String::new()
        } else {
            vec![format!("### Piece\r\n{}", "word ".repeat(300)); 30].join(BETWEEN)
        };
        Reply::page("text/plain; charset=utf-8", words)
    })
    .await;
    let tool = QueryDocs::new(fixed(options(Some(KEY), &server.base)));
    let id = "/tokio-rs/axum/v1";
    let ask = |arguments: Value| run(&tool, arguments);
    let text = ask(json!({"library_id": id, "topic": "a b"})).await.result.text;
    assert!(text.starts_with("### Piece\nword word"), "{text}");
    let (shown, foot) = text.rsplit_once("\n[").unwrap();
    assert!(shown.len() <= 20_000 && shown.len() > 18_000 && shown.ends_with("word "), "{shown}");
    assert_eq!(
        foot,
        format!("{} of 46285 bytes; ask a narrower topic or for more tokens]", shown.len())
    );
    let few = ask(json!({"library_id": id, "topic": "a", "tokens": 10})).await.result.text;
    assert!(few.starts_with("### Piece\nword") && few.contains("\n[40 of 46285 bytes"), "{few}");
    let most = ask(json!({"library_id": id, "topic": "a", "tokens": 1_000_000})).await.result.text;
    assert!(most.len() > 46_000 && most.len() < 49_000);
    let none = ask(json!({"library_id": id, "topic": "none"})).await.result;
    assert!(!none.is_error && none.text.starts_with("No documentation"));
    let head = &server.heads()[0];
    let line = "GET /api/v2/context?libraryId=%2Ftokio-rs%2Faxum%2Fv1&query=a+b&type=txt HTTP";
    assert!(head.starts_with(line), "{head}");
    for id in ["axum", "/axum/", ""] {
        let wrong = ask(json!({"library_id": id, "topic": "a"})).await.result;
        assert!(wrong.is_error && wrong.text.contains("context7_resolve_library"));
    }
}

#[tokio::test]
async fn refusals_say_what_to_do_and_never_the_key() {
    let server = Server::start(|path, _| {
        let (status, header) = match path {
            path if path.contains("query=401") => (401, "x-a: b"),
            path if path.contains("query=403") => (403, "x-a: b"),
            path if path.contains("query=429") => (429, "retry-after: 17"),
            path if path.contains("query=301") => (301, "x-a: b"),
            path if path.contains("query=202") => (202, "x-a: b"),
            path if path.contains("query=404") => (404, "x-a: b"),
            path if path.contains("query=200") => (200, "x-a: b"),
            _ => (503, "x-a: b"),
        };
        let body = json!({"error": "code", "message": "the key ctx7sk-hush\u{1b}[1m it was",
            "redirectUrl": "/new/id"});
        Reply::new(
            status,
            &[header],
            if status == 200 { "<html>".to_owned() } else { body.to_string() },
        )
    })
    .await;
    let tool = Search::new(fixed(options(Some(KEY), &server.base)));
    for (query, wanted) in [
        ("401", "does not accept the API key (401). Tell the user to check DOCS_KEY"),
        ("403", "does not give this key access to that (403)"),
        ("429", "too many requests with this key (429). Try again in 17 seconds."),
        ("301", "Call again with /new/id."),
        ("202", "still preparing"),
        ("404", "does not know that"),
        ("503", "answered 503 Service Unavailable"),
        ("200", "cannot be read. Until then, use fetch"),
    ] {
        let result = run(&tool, json!({"query": query})).await.result;
        assert!(result.is_error && result.text.contains(wanted), "{query}: {}", result.text);
        assert!(!result.text.contains("hush") && !result.text.contains('\u{1b}'));
        if query == "401" {
            assert!(result.text.ends_with("It says: the key ****\u{241b}[1m it was"));
            assert!(result.text.contains("official documentation"));
        }
    }
    assert!(!format!("{:?}", options(Some(KEY), "")).contains("hush"));
}

#[tokio::test]
async fn without_a_key_nothing_is_asked_and_the_way_to_one_is_told() {
    let sender = watch::Sender::new(Arc::new(options(None, "https://docs.example/base/")));
    let tool = Search::new(sender.subscribe());
    let args = || serde_json::from_value(json!({"query": "x"})).unwrap();
    let told = tool.subjects(&args()).unwrap_err();
    for words in
        ["export it as DOCS_KEY", "context7.api_key", "use fetch", "context7.com/dashboard"]
    {
        assert!(told.contains(words), "{told}");
    }
    assert_eq!(run(&tool, json!({"query": "x"})).await, ToolOutput::error(told));
    // What is saved holds from the next call on.
    sender.send_replace(Arc::new(options(Some(KEY), "https://docs.example/base/")));
    let url = "https://docs.example/base/api/v2/libs/search?libraryName=x&query=x".to_owned();
    assert_eq!(tool.subjects(&args()), Ok(vec![Subject::Url { url }]));
    let mut off = options(Some(KEY), "https://docs.example");
    off.context7.enabled = false;
    sender.send_replace(Arc::new(off));
    assert!(tool.subjects(&args()).unwrap_err().contains("switched off"));
    for base in ["http://docs.example", "http://10.0.0.1", "nonsense", "ftp://docs.example"] {
        sender.send_replace(Arc::new(options(Some(KEY), base)));
        let error = tool.subjects(&args()).unwrap_err();
        assert!(error.contains("context7.base_url"), "{error}");
    }
    sender.send_replace(Arc::new(options(Some("a\nb"), "https://docs.example")));
    let odd = run(&tool, json!({"query": "x"})).await.result.text;
    assert!(odd.contains("Set it anew") && !odd.contains("a\nb"), "{odd}");
}

#[tokio::test]
async fn a_silent_service_is_left_by_cancel_and_by_time() {
    let server = Server::start(|_, _| Reply::stalling("")).await;
    let mut short = options(Some(KEY), &server.base);
    short.context7.timeout = Duration::from_millis(20);
    let late = run(&Search::new(fixed(short)), json!({"query": "x"})).await.result;
    assert!(late.is_error && late.text.contains("context7.timeout_secs"), "{}", late.text);

    let tool = Search::new(fixed(options(Some(KEY), &server.base)));
    let cancel = CancellationToken::new();
    let cx = context(&cancel);
    let args = serde_json::from_value(json!({"query": "x"})).unwrap();
    let (output, ()) = tokio::join!(tool.run(args, &cx), async {
        while server.heads().len() < 2 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    assert_eq!(output, ToolOutput::error("Cancelled."));
}

#[test]
fn switched_off_its_tools_are_not_offered() {
    let fixture = Fixture::new();
    let offered = |enabled: bool| {
        let mut options = options(None, "https://docs.example");
        options.context7.enabled = enabled;
        let tools = native_tools(&Environment {
            processes: Arc::default(),
            workspace: Arc::clone(&fixture.workspace),
            spawner: Spawner::new(Vec::new()),
            record: watch::Sender::default().subscribe(),
            web: fixed(options),
        });
        let names = tools.iter().map(|tool| tool.spec().name.clone());
        names.filter(|name| name.starts_with("context7_")).collect::<Vec<_>>()
    };
    assert_eq!(
        offered(true),
        ["context7_search", "context7_resolve_library", "context7_query_docs"]
    );
    assert!(offered(false).is_empty());
}

#[tokio::test]
async fn a_key_in_an_answer_is_not_shown() {
    let server = Server::start(|path, _| {
        let (media, body) = if path.contains("/context") {
            ("text/plain", format!("Set the header to Bearer {KEY}."))
        } else {
            let library = json!({"id": "/a/b", "title": "b", "description": format!("is {KEY}")});
            ("application/json", json!({"results": [library]}).to_string())
        };
        Reply::page(media, body)
    })
    .await;
    let options = fixed(options(Some(KEY), &server.base));
    let found = run(&Search::new(options.clone()), json!({"query": "b"})).await.result;
    assert!(!found.is_error && found.text.contains("is ****"), "{}", found.text);
    let documents = json!({"library_id": "/a/b", "topic": "c"});
    let read = run(&QueryDocs::new(options), documents).await.result;
    assert!(!read.is_error && read.text.contains("Bearer ****."), "{}", read.text);
}
