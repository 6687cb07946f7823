//! As much HTTP/1.1 as a scripted server needs, with every write under control.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// A request as it came.
pub(crate) struct RawRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Reads one request; `None` at the end of the connection.
pub(crate) fn read_request(from: &mut BufReader<TcpStream>) -> io::Result<Option<RawRequest>> {
    let Some(first) = read_line(from)? else { return Ok(None) };
    let mut words = first.split(' ');
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(io::Error::other(format!("no request line: {first:?}")));
    };
    let mut headers = Vec::new();
    while let Some(line) = read_line(from)?
        && !line.is_empty()
    {
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    }
    let header = |wanted: &str| {
        headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    };
    let body = if header("transfer-encoding").is_some_and(|how| how.contains("chunked")) {
        read_chunks(from)?
    } else {
        let length = header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        from.read_exact(&mut body)?;
        body
    };
    let (method, path) = (method.to_owned(), path.to_owned());
    Ok(Some(RawRequest { method, path, headers, body }))
}

fn read_line(from: &mut BufReader<TcpStream>) -> io::Result<Option<String>> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()))
}

fn read_chunks(from: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = read_line(from)?.unwrap_or_default();
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
        let begin = body.len();
        body.resize(begin + size, 0);
        from.read_exact(&mut body[begin..])?;
        read_line(from)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

/// Writes a response with a known length.
pub(crate) fn write_document(
    to: &mut TcpStream,
    status: u16,
    headers: &[(String, String)],
    content_type: &str,
    body: &[u8],
) -> io::Result<()> {
    let mut bytes = head(status, headers, content_type).into_bytes();
    write!(bytes, "content-length: {}\r\n\r\n", body.len())?;
    bytes.extend_from_slice(body);
    to.write_all(&bytes)
}

/// Writes the head of a chunked response.
pub(crate) fn begin_chunks(
    to: &mut TcpStream,
    status: u16,
    headers: &[(String, String)],
) -> io::Result<()> {
    let mut head = head(status, headers, "text/event-stream");
    head.push_str("transfer-encoding: chunked\r\n\r\n");
    to.write_all(head.as_bytes())
}

/// Writes one chunk as one network write.
pub(crate) fn write_chunk(to: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    to.write_all(&chunk)
}

/// Ends a chunked response well.
pub(crate) fn end_chunks(to: &mut TcpStream) -> io::Result<()> {
    to.write_all(b"0\r\n\r\n")
}

fn head(status: u16, headers: &[(String, String)], content_type: &str) -> String {
    let mut head = format!("HTTP/1.1 {status} Scripted\r\ncontent-type: {content_type}\r\n");
    for (name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head
}
