//! Bodies of answers, read to a bound.

use std::io::{self, Read as _};

use flate2::read::MultiGzDecoder;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};

use super::client::causes;

/// The value of `Accept-Encoding` for what [`read`] can unpack.
pub(crate) const ACCEPTED: &str = "gzip";

/// A body, or its beginning.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
    /// There was more.
    pub(crate) cut: bool,
}

/// Reads at most `limit` bytes, counted before and after unpacking.
pub(crate) async fn read(mut response: Response, limit: usize) -> Result<Body, String> {
    let packed = is_packed(response.headers())?;
    let mut body = Body { bytes: Vec::new(), cut: false };
    while let Some(piece) = response
        .chunk()
        .await
        .map_err(|error| format!("The connection broke: {}.", causes(&error)))?
    {
        let room = limit - body.bytes.len();
        body.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            body.cut = true;
            break;
        }
    }
    if packed { unpack(&body, limit) } else { Ok(body) }
}

fn is_packed(headers: &HeaderMap) -> Result<bool, String> {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    let Some(coding) = codings.next() else { return Ok(false) };
    let coding = String::from_utf8_lossy(coding.as_bytes()).trim().to_ascii_lowercase();
    match coding.as_str() {
        _ if codings.next().is_some() => Err("The body is packed more than once.".to_owned()),
        "" | "identity" => Ok(false),
        "gzip" | "x-gzip" => Ok(true),
        _ => Err(format!("The body is packed as {coding:?}, which nobody asked for.")),
    }
}

fn unpack(body: &Body, limit: usize) -> Result<Body, String> {
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut cut = body.cut;
    match MultiGzDecoder::new(body.bytes.as_slice()).take(most).read_to_end(&mut bytes) {
        Ok(_) => {}
        // What was packed had been cut; what came out before that is good.
        Err(error) if body.cut && error.kind() == io::ErrorKind::UnexpectedEof => {}
        Err(error) => return Err(format!("The body cannot be unpacked: {error}.")),
    }
    if bytes.len() > limit {
        bytes.truncate(limit);
        cut = true;
    }
    Ok(Body { bytes, cut })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn unpacking_stops_at_the_bound() {
        let whole = |bytes| Body { bytes, cut: false };
        let zeros = packed(&vec![0; 10_000_000]);
        assert!(zeros.len() < 20_000);
        let unpacked = unpack(&whole(zeros.clone()), 1000).unwrap();
        assert_eq!(unpacked, Body { bytes: vec![0; 1000], cut: true });
        assert_eq!(unpack(&whole(packed(b"words")), 5), Ok(whole(b"words".to_vec())));
        let half = zeros[..zeros.len() / 2].to_vec();
        let unpacked = unpack(&Body { bytes: half.clone(), cut: true }, 100_000_000).unwrap();
        assert!(unpacked.cut && unpacked.bytes.len() > 1_000_000);
        assert!(unpack(&whole(half), 100_000_000).unwrap_err().contains("cannot be unpacked"));
        assert!(unpack(&whole(b"plain".to_vec()), 100).unwrap_err().contains("cannot be unpacked"));
    }
}
