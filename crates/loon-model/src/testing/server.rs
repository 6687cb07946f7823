//! A server on this machine that gives answers in the order of a list.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::provider::{ProviderConfig, ProviderKind};

/// What a server does with a connection once it has answered.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Then {
    Keep,
    Close,
    Hang,
}

/// A request as it came in, under the number of its connection.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) connection: usize,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// A server that gives these answers, one a request, whatever is asked.
pub(crate) struct Fake {
    pub(crate) base_url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// Completes once a connection that hangs was closed from the other side.
    pub(crate) left: oneshot::Receiver<()>,
}

impl Fake {
    pub(crate) async fn start(replies: Vec<(String, Then)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (leaving, left) = oneshot::channel();
        let log = asked.clone();
        tokio::spawn(async move {
            let mut replies = replies.into_iter();
            for connection in 1.. {
                let (mut socket, _) = listener.accept().await.unwrap();
                while let Some((head, body)) = read_request(&mut socket).await {
                    log.lock().unwrap().push(Asked { connection, head, body });
                    let (reply, then) = replies.next().unwrap();
                    socket.write_all(reply.as_bytes()).await.unwrap();
                    match then {
                        Then::Keep => {}
                        Then::Close => break,
                        Then::Hang => {
                            assert!(read_request(&mut socket).await.is_none());
                            let _ = leaving.send(());
                            return;
                        }
                    }
                }
            }
        });
        Self { base_url, asked, left }
    }

    pub(crate) fn config(&self, kind: ProviderKind) -> ProviderConfig {
        ProviderConfig { base_url: Some(self.base_url.clone()), ..ProviderConfig::new("lab", kind) }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn read_request(socket: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.parse().unwrap());
            if bytes.len() >= end + 4 + length {
                return Some((head, String::from_utf8(bytes[end + 4..].to_vec()).unwrap()));
            }
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

pub(crate) fn reply(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

pub(crate) const EVENTS: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// The chunk of a chunked body.
pub(crate) fn chunk(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n", body.len())
}
