//! `fetch` against a server on loopback: what is read, what is refused, and what stays within bounds.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use loon_api::EffectKey;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::web::server::{Reply, Server, fixed, options};

fn fetch() -> Fetch {
    Fetch::new(fixed(options(None, "")))
}

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

async fn run(tool: &Fetch, arguments: Value) -> ToolOutput {
    let args = serde_json::from_value(arguments).unwrap();
    tool.run(args, &context(&CancellationToken::new())).await
}

async fn read(tool: &Fetch, url: &str) -> Result<String, String> {
    let result = run(tool, json!({"url": url})).await.result;
    if result.is_error { Err(result.text) } else { Ok(result.text) }
}

/// Serves one reply, and gives what a fetch makes of it.
async fn fetched(reply: fn() -> Reply) -> Result<String, String> {
    let server = Server::start(move |_, _| reply()).await;
    read(&fetch(), &format!("{}/page", server.base)).await
}

#[test]
fn the_url_that_is_judged_is_the_one_that_is_asked() {
    let subjects = |url: &str| {
        fetch().subjects(&Args { url: url.to_owned(), format: Format::Markdown, offset: None })
    };
    for (written, judged) in [
        (" https://Docs.Example/a b#part ", "https://docs.example/a%20b"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http:\\\\docs.example\\x", "http://docs.example/x"),
        ("https://docs.example:443/../x", "https://docs.example/x"),
    ] {
        assert_eq!(subjects(written), Ok(vec![Subject::Url { url: judged.to_owned() }]));
    }
    let long = format!("https://docs.example/{}", "a".repeat(1_000_000));
    for (written, problem) in [
        (long.as_str(), "at most 8.0 KiB are asked for"),
        ("docs.example/x", "with https://"),
        ("file:///etc/passwd", "Only http and https"),
        ("https://me:secret@docs.example/", "user name or password"),
        ("https://docs.example@evil.example/", "user name or password"),
        ("https://", "is no URL"),
    ] {
        let error = subjects(written).unwrap_err();
        assert!(error.contains(problem) && !error.contains("secret"), "{error}");
        assert!(error.len() < 200, "{error}");
    }
}

#[tokio::test]
async fn html_becomes_markdown_with_whole_links() {
    let html = r##"<!doctype html><html><head><title>The
        Title</title><style>p {}</style></head><body><h1>Head<a href="#head">#</a></h1>
        <p>One <b>bold</b> <a href="/x?a=1">link</a><script>alert(1)</script></p>
        <img src="dot.png"><img src="pic.png" alt="a picture"><a href="javascript:x()">no</a>
        <ul><li>first<li>second</ul><pre><code class="language-rust">fn a() {
    b();
}</code></pre><table><tr><th>k<th>v<tr><td>1<td>2</table></body></html>"##;
    let server = Server::start(move |_, _| Reply::page("text/html; charset=utf-8", html)).await;
    let url = format!("{}/docs/page", server.base);
    let text = read(&fetch(), &url).await.unwrap();
    let base = &server.base;
    assert!(text.starts_with("Title: The Title\n\n# Head#\n"), "{text}");
    assert!(text.contains(&format!("One **bold** [link]({base}/x?a=1)")), "{text}");
    assert!(text.contains(&format!("![a picture]({base}/docs/pic.png)")), "{text}");
    assert!(text.contains("- first\n- second"), "{text}");
    assert!(text.contains("```rust\nfn a() {\n    b();\n}\n```"), "{text}");
    assert!(text.contains("| k | v |"), "{text}");
    for noise in ["alert", "p {}", "dot.png", "javascript", "#head"] {
        assert!(!text.contains(noise), "{noise} in {text}");
    }
    let plain = run(&fetch(), json!({"url": url, "format": "text"})).await.result.text;
    assert!(plain.starts_with("Title: The Title\n\nHead#\nOne bold link\n"), "{plain}");
    assert!(plain.contains("\n- first\n- second\nfn a() {\n    b();\n}\nk v\n1 2\n"), "{plain}");
    let raw = run(&fetch(), json!({"url": url, "format": "raw"})).await.result.text;
    assert_eq!(raw, html);
    let head = &server.heads()[0];
    assert!(head.contains(concat!("user-agent: loon/", env!("CARGO_PKG_VERSION"))), "{head}");
}

#[tokio::test]
async fn text_comes_as_it_is_and_safe() {
    let json = r#"{"a":1.10,"b":12345678901234567890123}"#;
    let server = Server::start(move |path, _| match path {
        "/json" => Reply::page("application/vnd.api+json", json),
        "/odd" => Reply::page("text/plain", "a\r\nb\x1b[31m\rc"),
        "/unsaid" => Reply::new(200, &[], "just words"),
        "/unsaid.html" => Reply::new(200, &[], "<!DOCTYPE html><p>x <i>y</i>"),
        "/octets" => Reply::page("application/octet-stream", "key = 1\n"),
        _ => Reply::page("text/plain", ""),
    })
    .await;
    let tool = fetch();
    for (path, wanted) in [
        ("json", json),
        ("odd", "a\nb\u{241b}[31m\nc"),
        ("unsaid", "just words"),
        ("unsaid.html", "x *y*"),
        ("octets", "key = 1\n"),
        ("empty", "[no text]"),
    ] {
        let text = read(&tool, &format!("{}/{path}", server.base)).await;
        assert_eq!(text.as_deref(), Ok(wanted), "{path}");
    }
}

#[tokio::test]
async fn characters_are_read_as_they_were_meant() {
    let latin = b"caf\xe9".as_slice();
    for (media, body, wanted) in [
        ("text/plain; charset=iso-8859-1", latin, "caf\u{e9}"),
        ("text/plain", latin, "caf\u{e9}"),
        ("text/plain; charset=\"Shift_JIS\"", b"\x93\xfa\x96\x7b", "\u{65e5}\u{672c}"),
        ("text/html", b"<meta charset='windows-1251'><p>\xcf\xf0", "\u{41f}\u{440}"),
        (
            "text/html",
            b"<meta http-equiv=x content=\"text/html; charset=koi8-r\"><p>\xf0\xf2",
            "\u{41f}\u{420}",
        ),
        ("text/html; charset=utf-8", "<meta charset=koi8-r><p>\u{e9}".as_bytes(), "\u{e9}"),
        ("text/plain; charset=koi8-r", b"\xef\xbb\xbf\xc3\xa9", "\u{e9}"),
        ("text/plain", b"\xff\xfeh\0i\0", "hi"),
        ("text/plain; charset=nonsense", "\u{e9}".as_bytes(), "\u{e9}"),
    ] {
        let (media, body) = (media.to_owned(), body.to_vec());
        let server = Server::start(move |_, _| Reply::page(&media, &body)).await;
        assert_eq!(read(&fetch(), &server.base).await.as_deref(), Ok(wanted));
    }
}

#[tokio::test]
async fn what_is_no_text_is_refused_with_its_size() {
    let image = fetched(|| Reply::page("image/png", vec![7; 2048])).await.unwrap_err();
    assert!(
        image.ends_with("/page is image/png (2.0 KiB), not text, and was not read."),
        "{image}"
    );
    let octets = fetched(|| Reply::page("application/octet-stream", b"\x7fELF\0\0")).await;
    assert!(octets.unwrap_err().contains("is not text (application/octet-stream, 6 bytes)"));
    let lie = fetched(|| Reply::page("text/plain", b"GIF89a\0\0")).await;
    assert!(lie.unwrap_err().contains("is not text"));
}

#[tokio::test]
async fn redirects_go_on_only_where_the_same_decision_holds() {
    let to = |target: &str| Reply::new(302, &[&format!("location: {target}")], "");
    let server = Server::start(move |path, port| match path {
        "/same" => to("/page?x=1#part"),
        "/page?x=1" => Reply::page("text/plain", "here"),
        "/host" => to("https://other.example/x"),
        "/name" => to(&format!("http://localhost:{port}/page")),
        "/port" => to("http://127.0.0.1:1/page"),
        "/user" => to("http://me:secret@127.0.0.1/x"),
        "/file" => to("file:///etc/passwd"),
        "/long" => to(&format!("/{}", "a".repeat(50_000))),
        "/loop" => to("/loop"),
        "/lost" => Reply::new(302, &["content-type: text/plain"], "no location"),
        _ => Reply::page("text/plain", "wrong"),
    })
    .await;
    let tool = fetch();
    let base = &server.base;
    let at = |path: &str| format!("{base}{path}");
    assert_eq!(read(&tool, &at("/same")).await, Ok(format!("[from {base}/page?x=1]\n\nhere")));
    for (path, target) in [
        ("/host", "https://other.example/x".to_owned()),
        ("/name", format!("http://localhost:{}/page", server.port)),
        ("/port", "http://127.0.0.1:1/page".to_owned()),
    ] {
        let output = run(&tool, json!({"url": at(path)})).await;
        assert!(!output.result.is_error);
        let text = output.result.text;
        assert!(text.contains("(302)") && text.ends_with(&format!("call fetch with:\n{target}")));
    }
    let user = read(&tool, &at("/user")).await.unwrap_err();
    assert!(user.contains("cannot be followed"), "{user}");
    let file = read(&tool, &at("/file")).await.unwrap_err();
    assert!(file.contains("which cannot be followed: Only http and https"), "{file}");
    let long = read(&tool, &at("/long")).await.unwrap_err();
    assert!(long.contains("cannot be followed: The URL has 48.") && long.len() < 600, "{long}");
    assert!(read(&tool, &at("/loop")).await.unwrap_err().contains("more than 5 times"));
    assert_eq!(read(&tool, &at("/lost")).await.as_deref(), Ok("no location"));
    assert_eq!(server.heads().iter().filter(|head| head.contains(" /loop ")).count(), 6);
    assert!(!server.heads().iter().any(|head| head.contains(" /page ")));
}

#[test]
fn the_secure_side_of_the_same_host_is_the_same_place() {
    let same =
        |from: &str, to: &str| is_same_place(&Url::parse(from).unwrap(), &Url::parse(to).unwrap());
    assert!(same("http://a.example/x", "https://a.example/y"));
    assert!(same("http://A.example:80/x", "http://a.example/y"));
    assert!(!same("https://a.example/x", "http://a.example/x"));
    assert!(!same("http://a.example:8080/", "https://a.example/"));
    assert!(!same("http://a.example/", "https://a.example:8443/"));
    assert!(!same("http://a.example/", "http://www.a.example/"));
}

#[tokio::test]
async fn a_long_page_is_read_page_by_page_from_one_answer() {
    let line = |number: usize| format!("{number:05} {}\n", "\u{e9}".repeat(20));
    let whole: String = (0..2500).map(line).collect();
    let body = whole.clone();
    let server = Server::start(move |_, _| Reply::page("text/plain", &body)).await;
    let tool = fetch();
    let (mut read, mut offset) = (String::new(), 0);
    loop {
        let result = run(&tool, json!({"url": server.base, "offset": offset})).await.result;
        assert!(!result.is_error && result.text.len() < 41 * 1024);
        let (piece, foot) = result.text.rsplit_once("\n[").unwrap();
        read.push_str(piece);
        let Some((_, next)) = foot.split_once("offset ") else {
            assert_eq!(foot, format!("bytes {offset} to {}, the end]", whole.len()));
            break;
        };
        assert!(piece.ends_with('\n'));
        offset = next.trim_end_matches(']').parse().unwrap();
    }
    assert_eq!(read, whole);
    assert_eq!(server.heads().len(), 1);
    let past = run(&tool, json!({"url": server.base, "offset": whole.len()})).await.result;
    assert!(past.is_error && past.text.contains("offset must be below"));
    // Inside a character.
    let inside = run(&tool, json!({"url": server.base, "offset": 7})).await.result;
    assert!(inside.text.starts_with('\u{e9}'));
    run(&tool, json!({"url": server.base})).await;
    assert_eq!(server.heads().len(), 2);
}

#[tokio::test]
async fn a_body_is_read_to_its_bound() {
    let server = Server::start(|path, _| {
        let body = "0123456\n".repeat(1024 * 1024);
        match path {
            "/packed" => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(body.as_bytes()).unwrap();
                let body = encoder.finish().unwrap();
                Reply::new(200, &["content-type: text/plain", "content-encoding: gzip"], body)
            }
            "/brotli" => Reply::new(200, &["content-encoding: br"], "x"),
            _ => Reply::page("text/plain", body),
        }
    })
    .await;
    for path in ["plain", "packed"] {
        let tool = fetch();
        let url = format!("{}/{path}", server.base);
        let first = read(&tool, &url).await.unwrap();
        assert!(first.ends_with(&format!("of {BODY}; go on with offset 40960]")));
        let end = run(&tool, json!({"url": url, "offset": BODY - 8})).await.result.text;
        assert!(end.starts_with("0123456\n") && end.contains("larger than 5.0 MiB;"), "{end}");
    }
    let brotli = read(&fetch(), &format!("{}/brotli", server.base)).await.unwrap_err();
    assert!(brotli.contains("packed as \"br\""), "{brotli}");
    assert!(server.heads()[0].contains("accept-encoding: gzip"));
}

#[tokio::test]
async fn a_slow_body_ends_by_cancel_and_by_time() {
    let server = Server::start(|_, _| Reply::stalling("beginning")).await;
    let mut short = options(None, "");
    short.timeout = Duration::from_millis(20);
    let late = read(&Fetch::new(fixed(short)), &server.base).await.unwrap_err();
    assert!(late.contains("web.timeout_secs"), "{late}");

    let cancel = CancellationToken::new();
    let tool = fetch();
    let args = serde_json::from_value(json!({"url": server.base})).unwrap();
    let cx = context(&cancel);
    let (output, ()) = tokio::join!(tool.run(args, &cx), async {
        while server.heads().len() < 2 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    assert_eq!(output, ToolOutput::error("Cancelled."));
}

#[tokio::test]
async fn a_refusal_comes_with_its_status_and_some_of_its_words() {
    let server = Server::start(|path, _| match path {
        "/busy" => Reply::new(429, &["retry-after: 30", "content-type: text/plain"], "slow down"),
        "/image" => Reply::new(500, &["content-type: image/png"], b"\x89PNG"),
        _ => {
            let words = format!("<title>t</title><h1>Gone</h1>{}", "word ".repeat(10_000));
            Reply::new(404, &["content-type: text/html"], words)
        }
    })
    .await;
    let output = run(&fetch(), json!({"url": format!("{}/x", server.base)})).await;
    let text = &output.result.text;
    assert!(output.result.is_error);
    assert!(text.starts_with(&format!("{}/x answered 404 Not Found.\nGone\nword", server.base)));
    assert!(text.ends_with("bytes]") && text.len() < 2300, "{text}");
    assert_eq!(output.summary, "status 404");
    let busy = read(&fetch(), &format!("{}/busy", server.base)).await.unwrap_err();
    assert!(busy.contains("429 Too Many Requests. Try again in 30 seconds."), "{busy}");
    assert!(busy.ends_with("\nslow down"));
    let image = read(&fetch(), &format!("{}/image", server.base)).await.unwrap_err();
    assert!(image.ends_with("500 Internal Server Error."), "{image}");
}

/// As a name server would that leads to this machine.
fn to_loopback(_: String) -> loon_api::BoxFuture<'static, std::io::Result<Vec<SocketAddr>>> {
    Box::pin(async { Ok(vec![SocketAddr::from(([127, 0, 0, 1], 0))]) })
}

#[tokio::test]
async fn a_public_name_cannot_lead_to_this_machine() {
    let server = Server::start(|_, _| Reply::page("text/plain", "inside")).await;
    let at = |host: &str| format!("http://{host}:{}/", server.port);
    let guarded = Fetch::with_lookup(fixed(options(None, "")), to_loopback);
    for host in ["docs.example", "DOCS.example."] {
        let error = read(&guarded, &at(host)).await.unwrap_err();
        assert!(
            error.contains("leads to 127.0.0.1") && error.contains("web.private_hosts"),
            "{error}"
        );
    }
    assert!(server.heads().is_empty());
    // Names that the gate judges as local, and those that settings name.
    let mut named = options(None, "");
    named.private_hosts = vec!["Docs.example".to_owned()];
    let named = Fetch::with_lookup(fixed(named), to_loopback);
    assert_eq!(read(&named, &at("docs.example")).await.as_deref(), Ok("inside"));
    assert!(read(&named, &at("other.example")).await.is_err());
    assert_eq!(read(&guarded, &at("app.localhost")).await.as_deref(), Ok("inside"));
    assert_eq!(read(&guarded, &at("127.0.0.1")).await.as_deref(), Ok("inside"));
}

#[tokio::test]
async fn pages_made_to_hurt_stay_within_bounds() {
    let page = |html: String| async move {
        let server = Server::start(move |_, _| Reply::page("text/html", &html)).await;
        read(&fetch(), &server.base).await.unwrap()
    };
    let nested = page(format!("{}deep{}", "<div>".repeat(300), "</div>".repeat(300))).await;
    assert_eq!(nested, "deep\n\n[nested too deep for Markdown, shown as plain text]");
    let deepest = page(format!("top{}deep", "<div>".repeat(500_000))).await;
    assert!(deepest.starts_with("top\n") && deepest.contains("nested too deep or has too many"));
    let tags: Vec<String> = (0..900).map(|number| format!("<b id={number}>")).collect();
    let formatted = tags.concat();
    let many = page(format!("top{formatted}{}", "<p>x".repeat(200_000))).await;
    assert!(many.starts_with("top") && many.contains("go on with offset"));
    let edge = page(format!("{}x", "<em><ul><li>".repeat(48))).await;
    assert!(edge.contains('x') && !edge.contains("plain text"), "{edge}");
}

#[tokio::test]
async fn an_address_without_a_server_is_said_so() {
    let server = Server::start(|_, _| Reply::page("text/plain", "")).await;
    let url = format!("{}/x", server.base);
    drop(server);
    let error = read(&fetch(), &url).await.unwrap_err();
    assert!(error.starts_with("Cannot reach http://127.0.0.1:") || error.starts_with("No answer"));
}
