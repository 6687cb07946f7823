//! A server on loopback for tests: it answers each request by a function of its path.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::web::{Context7Options, LiveWebOptions, WebOptions};

/// Answers requests as long as it lives.
pub(crate) struct Server {
    /// `http://127.0.0.1:PORT`.
    pub(crate) base: String,
    pub(crate) port: u16,
    heads: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

/// What a path is answered with.
pub(crate) struct Reply {
    bytes: Vec<u8>,
    /// The end of the body never comes.
    stalls: bool,
}

impl Reply {
    /// An answer with headers given as `Name: value` and a body of known length.
    pub(crate) fn new(status: u16, headers: &[&str], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n", body.len());
        for header in headers {
            head.push_str(header);
            head.push_str("\r\n");
        }
        head.push_str("connection: close\r\n\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        Self { bytes, stalls: false }
    }

    /// A page of this type.
    pub(crate) fn page(media: &str, body: impl AsRef<[u8]>) -> Self {
        Self::new(200, &[&format!("content-type: {media}")], body)
    }

    /// Sends nothing after this and keeps the connection open.
    pub(crate) fn stalling(beginning: &str) -> Self {
        let head = "HTTP/1.1 200 x\r\ncontent-type: text/plain\r\ncontent-length: 1000000\r\n\r\n";
        Self { bytes: format!("{head}{beginning}").into_bytes(), stalls: true }
    }
}

impl Server {
    pub(crate) async fn start(answer: impl Fn(&str, u16) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer) = (Arc::clone(&heads), Arc::new(answer));
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        match stream.read_u8().await {
                            Ok(byte) => head.push(byte),
                            Err(_) => return,
                        }
                    }
                    let head = String::from_utf8(head).unwrap();
                    let path = head.split(' ').nth(1).unwrap().to_owned();
                    kept.lock().unwrap().push(head);
                    let reply = answer(&path, port);
                    // The client may have heard enough.
                    let _ = stream.write_all(&reply.bytes).await;
                    if reply.stalls {
                        std::future::pending::<()>().await;
                    }
                });
            }
        });
        Self { base: format!("http://127.0.0.1:{port}"), port, heads, task }
    }

    /// The heads of the requests so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Options with this key and base URL for Context7.
pub(crate) fn options(key: Option<&str>, base_url: &str) -> WebOptions {
    WebOptions {
        timeout: Duration::from_secs(30),
        private_hosts: Vec::new(),
        context7: Context7Options {
            enabled: true,
            api_key: key.map(Into::into),
            api_key_env: "DOCS_KEY".to_owned(),
            timeout: Duration::from_secs(30),
            base_url: base_url.to_owned(),
        },
    }
}

/// Options that do not change.
pub(crate) fn fixed(options: WebOptions) -> LiveWebOptions {
    watch::Sender::new(Arc::new(options)).subscribe()
}
