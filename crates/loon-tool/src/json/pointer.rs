//! JSON Pointers (RFC 6901): reading one, following it, and saying where it leads nowhere.

use super::{Kind, Node};
use crate::text;

/// Most keys named when one is not there.
const KEYS: usize = 30;

/// A JSON Pointer, unescaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    tokens: Vec<String>,
}

/// What a pointer led to.
#[derive(Clone, Debug)]
pub(crate) struct Found<'a> {
    pub(crate) node: Node<'a>,
    /// Objects on the way in which its key stands more than once; the last one was followed.
    pub(crate) doubled: Vec<String>,
}

impl Pointer {
    /// Reads a pointer as the model wrote it.
    pub(crate) fn parse(written: &str) -> Result<Self, String> {
        if written.is_empty() {
            return Ok(Self { tokens: Vec::new() });
        }
        let Some(rest) = written.strip_prefix('/') else {
            return Err(format!(
                "{} is no JSON Pointer: it begins with a slash, as /a/0/b; the whole document is \
                 the empty string.",
                text::visible_line(written)
            ));
        };
        let tokens = rest.split('/').map(unescape).collect::<Option<_>>().ok_or_else(|| {
            format!(
                "{} is no JSON Pointer: write ~0 for ~ and ~1 for / within a key.",
                text::visible_line(written)
            )
        })?;
        Ok(Self { tokens })
    }

    /// The pointer to what holds the value, and the value's own key or index; absent for the root.
    pub(crate) fn split(&self) -> Option<(Self, &str)> {
        let (last, parents) = self.tokens.split_last()?;
        Some((Self { tokens: parents.to_vec() }, last))
    }

    /// Follows it from the root of a text.
    pub(crate) fn find<'a>(&self, root: Node<'a>) -> Result<Found<'a>, String> {
        let mut found = Found { node: root, doubled: Vec::new() };
        for (depth, token) in self.tokens.iter().enumerate() {
            let (child, times) = step(found.node, token);
            let Some(child) = child else {
                let holder = Self { tokens: self.tokens[..depth].to_vec() };
                return Err(format!("{self} is not there: {}", holder.holds(found.node, token)));
            };
            if times > 1 {
                let place = Self { tokens: self.tokens[..=depth].to_vec() };
                found.doubled.push(format!("{place} stands there {times} times"));
            }
            found.node = child;
        }
        Ok(found)
    }

    /// A sentence about the value at this pointer, which has no child `token`.
    pub(crate) fn holds(&self, node: Node<'_>, token: &str) -> String {
        match node.kind() {
            Kind::Object => {
                let mut keys: Vec<String> = node
                    .members()
                    .take(KEYS + 1)
                    .filter_map(|member| Some(text::visible_line(&member.key.string()?)))
                    .collect();
                if keys.is_empty() {
                    return format!("{self} is an empty object.");
                }
                if keys.len() > KEYS {
                    keys.pop();
                    keys.push("...".to_owned());
                }
                format!("{self} is an object with the keys {}.", keys.join(", "))
            }
            Kind::Array => {
                let length = text::count(node.elements().count(), "element");
                let what = if index(token).is_some() { "" } else { " and has no keys" };
                format!("{self} is an array of {length}{what}.")
            }
            kind => format!("{self} is {}.", kind.name()),
        }
    }
}

impl std::fmt::Display for Pointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.tokens.is_empty() {
            return f.write_str("The document");
        }
        for token in &self.tokens {
            let escaped = token.replace('~', "~0").replace('/', "~1");
            write!(f, "/{}", text::visible_line(&escaped))?;
        }
        Ok(())
    }
}

fn unescape(token: &str) -> Option<String> {
    let mut parts = token.split('~');
    let mut whole = parts.next()?.to_owned();
    for part in parts {
        let (ch, rest) = match part.as_bytes().first()? {
            b'0' => ('~', &part[1..]),
            b'1' => ('/', &part[1..]),
            _ => return None,
        };
        whole.push(ch);
        whole.push_str(rest);
    }
    Some(whole)
}

/// The index that a token stands for.
pub(crate) fn index(token: &str) -> Option<usize> {
    let canonical = token == "0" || !token.starts_with('0');
    let digits = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit());
    if canonical && digits { token.parse().ok() } else { None }
}

/// A child, and how often its key stands there.
fn step<'a>(node: Node<'a>, token: &str) -> (Option<Node<'a>>, usize) {
    match node.kind() {
        Kind::Object => node
            .members()
            .filter(|member| member.key.is_text(token))
            .fold((None, 0), |(_, times), member| (Some(member.value), times + 1)),
        Kind::Array => (index(token).and_then(|index| node.elements().nth(index)), 1),
        _ => (None, 0),
    }
}
