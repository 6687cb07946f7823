//! A model server on the loopback interface. It speaks the real formats, answers from a script,
//! records every request and refuses, like a strict provider, what a client must not send.

use std::collections::{HashSet, VecDeque};
use std::io::{self, BufReader};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::{Value, json};

use crate::PATIENCE;
use crate::check::faults;
use crate::http::{
    RawRequest, begin_chunks, end_chunks, read_request, write_chunk, write_document,
};
use crate::reply::{Answer, Body, Reply, Step};
use crate::request::Request;
use crate::wire::{Wire, Writer};

type Script = Box<dyn FnMut(&Request) -> Option<Reply> + Send>;

/// A running server. It ends with this value, and then fails the test if a client broke a rule
/// (unless the faults were taken with [`ModelServer::take_faults`]).
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    script: Mutex<Script>,
    seen: Mutex<Seen>,
    changed: Condvar,
    closing: AtomicBool,
}

#[derive(Default)]
struct Seen {
    requests: Vec<Request>,
    lists: usize,
    /// Connections that were opened ahead of a request.
    warmed: Vec<usize>,
    faults: Vec<String>,
    abandoned: HashSet<usize>,
    streams: Vec<TcpStream>,
}

impl ModelServer {
    /// Answers requests with these, one after another.
    pub fn queue(replies: impl IntoIterator<Item = Reply>) -> Self {
        let mut replies: VecDeque<Reply> = replies.into_iter().collect();
        Self::start(Box::new(move |_| replies.pop_front()))
    }

    /// Answers by how many answers the conversation already holds: the first of these to a fresh
    /// one. A request sent again gets the same answer again.
    pub fn by_step(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies: Vec<Reply> = replies.into_iter().collect();
        Self::start(Box::new(move |request| replies.get(request.answers()).cloned()))
    }

    /// Answers every request with what the function says.
    pub fn answering(mut script: impl FnMut(&Request) -> Reply + Send + 'static) -> Self {
        Self::start(Box::new(move |request| Some(script(request))))
    }

    fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let address = listener.local_addr().expect("a bound address");
        let shared = Arc::new(Shared {
            script: Mutex::new(script),
            seen: Mutex::default(),
            changed: Condvar::new(),
            closing: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                if accepting.closing.load(Ordering::SeqCst) {
                    return;
                }
                let shared = Arc::clone(&accepting);
                if let Ok(copy) = stream.try_clone() {
                    shared.seen.lock().unwrap().streams.push(copy);
                }
                // A connection that breaks is the client's right; what it meant is in the record.
                thread::spawn(move || drop(shared.serve(number, stream)));
            }
        });
        Self { address, shared }
    }

    /// Base URL for settings, with its version segment.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All model requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.seen.lock().unwrap().requests.clone()
    }

    /// The last model request.
    pub fn last_request(&self) -> Request {
        self.requests().pop().expect("a model request")
    }

    /// How often the list of models was asked for.
    pub fn list_requests(&self) -> usize {
        self.shared.seen.lock().unwrap().lists
    }

    /// Blocks until at least `count` model requests have arrived.
    pub fn wait_for_requests(&self, count: usize) -> Vec<Request> {
        self.wait_until("requests", |seen| seen.requests.len() >= count);
        self.requests()
    }

    /// The connections that clients opened ahead of a request, once there are so many.
    pub fn wait_for_warmed(&self, count: usize) -> Vec<usize> {
        self.wait_until("a connection opened ahead", |seen| seen.warmed.len() >= count);
        self.warmed()
    }

    /// The connections that clients opened ahead of a request so far.
    pub fn warmed(&self) -> Vec<usize> {
        self.shared.seen.lock().unwrap().warmed.clone()
    }

    /// Blocks until the client has left the answer to the `order`-th request.
    pub fn wait_abandoned(&self, order: usize) {
        self.wait_until("a client leaving", |seen| seen.abandoned.contains(&order));
    }

    /// What clients did wrong so far; taken faults do not fail the test.
    pub fn take_faults(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.seen.lock().unwrap().faults)
    }

    fn wait_until(&self, what: &str, met: impl Fn(&Seen) -> bool) {
        let seen = self.shared.seen.lock().unwrap();
        let (seen, timeout) =
            self.shared.changed.wait_timeout_while(seen, PATIENCE, |seen| !met(seen)).unwrap();
        let count = seen.requests.len();
        drop(seen);
        assert!(!timeout.timed_out(), "waited in vain for {what}; {count} requests came");
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        for stream in &self.shared.seen.lock().unwrap().streams {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let _ = TcpStream::connect(self.address);
        let faults = self.take_faults();
        if !thread::panicking() {
            assert!(faults.is_empty(), "the client broke rules of the format: {faults:#?}");
        }
    }
}

/// What becomes of a connection after an answer.
#[derive(PartialEq, Eq)]
enum Next {
    KeepOpen,
    Close,
}

impl Shared {
    fn serve(&self, connection: usize, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        while let Some(raw) = read_request(&mut reader)? {
            if self.answer(connection, raw, &mut stream)? == Next::Close {
                break;
            }
        }
        stream.shutdown(Shutdown::Both)
    }

    fn answer(&self, connection: usize, raw: RawRequest, to: &mut TcpStream) -> io::Result<Next> {
        if raw.method == "GET" && raw.path.split('?').next() == Some("/v1/models") {
            self.note(|seen| seen.lists += 1);
            let models = json!({"object": "list", "has_more": false, "data": [
                {"id": "coder", "type": "model", "object": "model", "display_name": "Coder"},
            ]});
            return send_json(to, 200, &[], &models);
        }
        if raw.method == "HEAD" {
            self.note(|seen| seen.warmed.push(connection));
            write_document(to, 404, &[], "application/json", b"")?;
            return Ok(Next::KeepOpen);
        }
        let wire = Wire::of_path(&raw.path).filter(|_| raw.method == "POST");
        let Some(wire) = wire else {
            self.note(|seen| {
                seen.faults.push(format!("{} {} is not served", raw.method, raw.path));
            });
            return send_json(to, 404, &[], &json!({"error": {"message": "no such route"}}));
        };
        let faults = faults(wire, &raw.body, &raw.headers);
        let request = self.record(connection, wire, raw);
        if !faults.is_empty() {
            let document = wire.error(400, &faults.join("; "));
            self.note(|seen| {
                let order = request.order;
                seen.faults.extend(faults.iter().map(|fault| format!("request {order}: {fault}")));
            });
            return send_json(to, 400, &[], &document);
        }
        let reply = self.script.lock().unwrap()(&request);
        let Some(reply) = reply else {
            let fault = format!("request {}: the script has no answer for it", request.order);
            let document = wire.error(400, &fault);
            self.note(|seen| seen.faults.push(fault));
            return send_json(to, 400, &[], &document);
        };
        let sent = self.send(&request, &reply, to);
        if sent.is_err() {
            self.note(|seen| {
                seen.abandoned.insert(request.order);
            });
        }
        sent
    }

    fn note(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.lock().unwrap());
        self.changed.notify_all();
    }

    fn record(&self, connection: usize, wire: Wire, raw: RawRequest) -> Request {
        let RawRequest { path, headers, body: bytes, .. } = raw;
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        let mut request = Request { wire, path, headers, body, bytes, connection, order: 0 };
        self.note(|seen| {
            request.order = seen.requests.len();
            seen.requests.push(request.clone());
        });
        request
    }

    fn send(&self, request: &Request, reply: &Reply, to: &mut TcpStream) -> io::Result<Next> {
        let Reply { status, headers, body } = reply;
        let model = request.body["model"].as_str().unwrap_or_default();
        match body {
            Body::Nothing => Ok(Next::Close),
            Body::Document { content_type, bytes } => {
                write_document(to, *status, headers, content_type, bytes)?;
                Ok(Next::KeepOpen)
            }
            Body::Error(message) => {
                send_json(to, *status, headers, &request.wire.error(*status, message))
            }
            Body::Chunks(chunks) => {
                begin_chunks(to, *status, headers)?;
                for chunk in chunks {
                    write_chunk(to, chunk)?;
                }
                end_chunks(to)?;
                Ok(Next::KeepOpen)
            }
            Body::Answer(answer) if request.body["stream"] == true => {
                begin_chunks(to, *status, headers)?;
                self.stream(request, model, answer, to)
            }
            Body::Answer(answer) | Body::Whole(answer) => {
                let document = request.wire.whole(answer, model, request.order);
                send_json(to, *status, headers, &document)
            }
        }
    }

    fn stream(
        &self,
        request: &Request,
        model: &str,
        answer: &Answer,
        to: &mut TcpStream,
    ) -> io::Result<Next> {
        let with_usage = request.body["stream_options"]["include_usage"] == true;
        let mut writer: Box<dyn Writer> = request.wire.writer(model, request.order, with_usage);
        let mut alone = false;
        send_frames(to, &writer.open(answer.usage), alone)?;
        for step in &answer.steps {
            let frames = match step {
                Step::Thinking(text) => writer.thinking(text),
                Step::Text(text) => writer.text(text),
                Step::Call { name, arguments } => writer.call(name, arguments),
                Step::Error { kind, message } => {
                    send_frames(to, &writer.error(kind, message), alone)?;
                    end_chunks(to)?;
                    return Ok(Next::KeepOpen);
                }
                Step::Drip => {
                    alone = true;
                    continue;
                }
                Step::Hold(latch) => {
                    if !latch.pass(|| self.closing.load(Ordering::SeqCst) || has_left(to)) {
                        return Err(io::ErrorKind::ConnectionAborted.into());
                    }
                    continue;
                }
                Step::Cut => return Ok(Next::Close),
                Step::EndEarly => {
                    end_chunks(to)?;
                    return Ok(Next::KeepOpen);
                }
            };
            send_frames(to, &frames, alone)?;
        }
        send_frames(to, &writer.close(answer.stop, answer.usage), alone)?;
        end_chunks(to)?;
        Ok(Next::KeepOpen)
    }
}

fn send_frames(to: &mut TcpStream, frames: &[String], alone: bool) -> io::Result<()> {
    for frame in frames {
        if alone {
            for byte in frame.bytes() {
                write_chunk(to, &[byte])?;
            }
        } else {
            write_chunk(to, frame.as_bytes())?;
        }
    }
    Ok(())
}

fn send_json(
    to: &mut TcpStream,
    status: u16,
    headers: &[(String, String)],
    document: &Value,
) -> io::Result<Next> {
    write_document(to, status, headers, "application/json", document.to_string().as_bytes())?;
    Ok(Next::KeepOpen)
}

/// True once the client has closed its end. A client says nothing while it reads an answer, so
/// anything to read is the end.
fn has_left(stream: &TcpStream) -> bool {
    let mut fds = [PollFd::new(stream.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
        && stream.peek(&mut [0]).map_or(true, |count| count == 0)
}

#[cfg(test)]
mod tests;
