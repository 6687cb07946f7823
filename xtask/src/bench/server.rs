//! The model server: one thread a connection, answers without thought, remembers when each request
//! came and when its answer had gone.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::DELTA_BYTES;
use super::wire::Wire;

/// Time from one piece of a paced answer to the next: 200 a second.
const PACE: Duration = Duration::from_millis(5);

/// One request and its answer.
pub(super) struct Exchange {
    /// When the first byte of the request came.
    pub(super) began: Instant,
    /// When the last byte of the answer was written.
    pub(super) ended: Instant,
    /// Size of the request's body.
    pub(super) bytes: usize,
}

type Seen = Arc<Mutex<Vec<Exchange>>>;

/// A running server on a loopback port.
pub(super) struct Server {
    port: u16,
    seen: Seen,
}

impl Server {
    /// Starts it. It ends with the process.
    pub(super) fn start() -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("cannot listen on loopback")?;
        let port = listener.local_addr()?.port();
        let seen = Seen::default();
        let shared = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&shared);
                // A program that goes away in mid-answer ends its connection, nothing else.
                thread::spawn(move || drop(serve(stream, &seen)));
            }
        });
        Ok(Self { port, seen })
    }

    /// The base URL under which it plays one of `echo`, `toolsN`, `streamBYTES`, `pacedN`.
    pub(super) fn url(&self, play: &str) -> String {
        format!("http://127.0.0.1:{}/{play}/v1", self.port)
    }

    /// What has been asked since the last time.
    pub(super) fn take(&self) -> Vec<Exchange> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn serve(stream: TcpStream, seen: &Seen) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::with_capacity(1 << 16, stream);
    while !reader.fill_buf()?.is_empty() {
        let began = Instant::now();
        let (path, body) = read_request(&mut reader)?;
        let bytes = body.len();
        let Some(wire) = Wire::of(&path) else {
            let models =
                json!({"object": "list", "data": [{"id": "model", "object": "model"}]}).to_string();
            write!(
                writer,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{models}",
                models.len()
            )?;
            continue;
        };
        let request: Value =
            serde_json::from_slice(&body).map_err(|_| io::ErrorKind::InvalidData)?;
        answer(&mut writer, wire, &path, &request)?;
        let exchange = Exchange { began, ended: Instant::now(), bytes };
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(exchange);
        // The end mark of the body goes after the clock: a client may act on the last event alone.
        writer.write_all(b"0\r\n\r\n")?;
    }
    Ok(())
}

fn read_request(reader: &mut impl BufRead) -> io::Result<(String, Vec<u8>)> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).ok_or(io::ErrorKind::InvalidData)?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let header = header.trim_end();
        if header.is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(|_| io::ErrorKind::InvalidData)?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((path, body))
}

fn answer(writer: &mut TcpStream, wire: Wire, path: &str, request: &Value) -> io::Result<()> {
    writer.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    )?;
    let play = path.split('/').nth(1).unwrap_or_default();
    let number = |name: &str| play.strip_prefix(name).and_then(|count| count.parse::<usize>().ok());
    let rounds = number("tools").unwrap_or(0);
    let done = wire.rounds(request);
    if done < rounds
        && let Some((name, arguments)) = wire.shell_call(request)
    {
        return chunk(writer, &wire.call(done, &name, &arguments));
    }
    let (head, piece, tail) = wire.text();
    chunk(writer, &head)?;
    if let Some(bytes) = number("stream") {
        // Every piece is an event of its own; the socket decides how many travel together.
        let piece = piece(&words(DELTA_BYTES));
        let batch = 256;
        let mut left = bytes / DELTA_BYTES;
        while left > 0 {
            let now = left.min(batch);
            chunk(writer, &piece.repeat(now))?;
            left -= now;
        }
    } else if let Some(pieces) = number("paced") {
        let piece = piece(&words(DELTA_BYTES));
        let began = Instant::now();
        for sent in 1..=u32::try_from(pieces).unwrap_or(u32::MAX) {
            chunk(writer, &piece)?;
            thread::sleep((PACE * sent).saturating_sub(began.elapsed()));
        }
    } else {
        chunk(writer, &piece("Done."))?;
    }
    chunk(writer, &tail)
}

fn chunk(writer: &mut TcpStream, text: &str) -> io::Result<()> {
    let mut bytes = format!("{:x}\r\n", text.len()).into_bytes();
    bytes.extend_from_slice(text.as_bytes());
    bytes.extend_from_slice(b"\r\n");
    writer.write_all(&bytes)
}

/// Plain words of exactly this many bytes.
fn words(bytes: usize) -> String {
    "lorem ipsum dolor sit amet ".chars().cycle().take(bytes).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// Sends one request and gives the events' data.
    fn ask(server: &Server, play: &str, path: &str, body: &Value) -> Vec<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        let body = body.to_string();
        write!(
            stream,
            "POST /{play}/v1{path} HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }

    #[test]
    fn it_calls_the_shell_tool_until_the_rounds_are_done() {
        let server = Server::start().unwrap();
        let schema = json!({"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]});
        let mut chat = json!({"tools": [{"type": "function", "function": {"name": "bash", "parameters": schema}}], "messages": []});
        let events = ask(&server, "tools1", "/chat/completions", &chat);
        let call = &events[0]["choices"][0]["delta"]["tool_calls"][0]["function"];
        assert_eq!(*call, json!({"name": "bash", "arguments": "{\"command\":\"true\"}"}));
        chat["messages"] = json!([{"role": "tool", "content": ""}]);
        let events = ask(&server, "tools1", "/chat/completions", &chat);
        assert_eq!(events[1]["choices"][0]["delta"]["content"], "Done.");

        let responses = json!({"tools": [{"type": "function", "name": "shell", "parameters": schema}], "input": []});
        let events = ask(&server, "tools1", "/responses", &responses);
        assert_eq!(events.last().unwrap()["response"]["output"][0]["name"], "shell");
        let messages = json!({"tools": [{"name": "bash", "input_schema": schema}], "messages": [{"role": "user", "content": "go"}]});
        let events = ask(&server, "tools1", "/messages", &messages);
        assert_eq!(events[1]["content_block"]["name"], "bash");
        assert_eq!(server.take().len(), 4);
    }

    #[test]
    fn the_stream_has_as_many_bytes_as_it_says() {
        let server = Server::start().unwrap();
        let events = ask(&server, "stream20000", "/chat/completions", &json!({"messages": []}));
        let bytes: usize = events
            .iter()
            .filter_map(|event| event["choices"][0]["delta"]["content"].as_str())
            .map(str::len)
            .sum();
        assert_eq!(bytes, 20_000);
        assert_eq!(events.len(), 1000 + 3);
    }
}
