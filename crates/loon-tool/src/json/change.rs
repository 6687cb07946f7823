//! Changes of single values in a JSON text, each a replacement of one part of it.

use std::ops::Range;

use serde_json::Value;

use super::layout::{Layout, line_indent, stays_on_one_line};
use super::pointer::{Found, Pointer, index};
use super::{Kind, Node};

/// One part of the text, and what comes in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) span: Range<usize>,
    pub(crate) new: String,
}

/// Replaces the value at `pointer`, or adds it as the last member of an object.
pub(crate) fn set(
    root: Node<'_>,
    pointer: &Pointer,
    value: &Value,
    layout: &Layout,
) -> Result<Change, String> {
    let Some((holder, key)) = pointer.split() else {
        return Ok(replace(root, root, value, layout));
    };
    let container = unambiguous(&holder.find(root)?)?;
    match container.kind() {
        Kind::Object if container.get(key).is_none() => {
            let entry = |indent: &str, inside: &Layout| {
                format!("{}{}", inside.key(key), inside.value(value, indent))
            };
            Ok(append(container, layout, entry))
        }
        _ => Ok(replace(container, unambiguous(&pointer.find(root)?)?, value, layout)),
    }
}

/// Inserts an element into an array before the given index (or `-`, its end); at a key of an
/// object the same as [`set`].
pub(crate) fn add(
    root: Node<'_>,
    pointer: &Pointer,
    value: &Value,
    layout: &Layout,
) -> Result<Change, String> {
    let Some((holder, key)) = pointer.split() else {
        return set(root, pointer, value, layout);
    };
    let container = unambiguous(&holder.find(root)?)?;
    if container.kind() != Kind::Array {
        return set(root, pointer, value, layout);
    }
    let length = container.elements().count();
    let place = if key == "-" { Some(length) } else { index(key) };
    match place {
        Some(place) if place == length => {
            Ok(append(container, layout, |indent, inside| inside.value(value, indent)))
        }
        Some(place) if place < length => Ok(insert(container, place, value, layout)),
        _ => Err(format!(
            "{pointer} is no place for a new element: {} Use an index up to {length}, or - for the \
             end.",
            holder.holds(container, key)
        )),
    }
}

/// Takes the value at `pointer` away, with its key.
pub(crate) fn remove(root: Node<'_>, pointer: &Pointer) -> Result<Change, String> {
    let node = unambiguous(&pointer.find(root)?)?;
    let Some((holder, _)) = pointer.split() else {
        return Err("The whole document cannot be removed; set it to another value.".to_owned());
    };
    let container = unambiguous(&holder.find(root)?)?;
    let mut entries: Vec<Range<usize>> = container
        .members()
        .map(|member| member.key.span().start..member.value.span().end)
        .collect();
    entries.extend(container.elements().map(Node::span));
    let place = entries.iter().position(|entry| entry.end == node.span().end).unwrap_or_default();
    let span = match (place.checked_sub(1).map(|before| &entries[before]), entries.get(place + 1)) {
        (_, Some(next)) => entries[place].start..next.start,
        (Some(before), None) => before.end..entries[place].end,
        (None, None) => container.span().start + 1..container.span().end - 1,
    };
    Ok(Change { span, new: String::new() })
}

/// A key that stands in an object twice has no one value to change.
fn unambiguous<'a>(found: &Found<'a>) -> Result<Node<'a>, String> {
    match found.doubled.first() {
        None => Ok(found.node),
        Some(doubled) => Err(format!("{doubled}; take one of them out by edit first.")),
    }
}

fn replace(container: Node<'_>, old: Node<'_>, value: &Value, layout: &Layout) -> Change {
    let layout = if stays_on_one_line(old, value) {
        layout.inside(old)
    } else if old.span() == container.span() {
        layout.clone()
    } else {
        layout.inside(container)
    };
    Change { span: old.span(), new: layout.value(value, line_indent(old)) }
}

/// Puts an entry, written by `entry` for an indentation, behind the last one.
fn append(container: Node<'_>, layout: &Layout, entry: impl Fn(&str, &Layout) -> String) -> Change {
    let inside = layout.inside(container);
    let indent = inside.indent_of_entries(container);
    let new = entry(&indent, &inside);
    match container.children().last() {
        Some(last) => {
            let end = last.span().end;
            Change { span: end..end, new: format!(",{}{new}", inside.before_entry(container)) }
        }
        None => {
            let span = container.span().start + 1..container.span().end - 1;
            let new = if inside.lines {
                format!("\n{indent}{new}\n{}", line_indent(container))
            } else {
                new
            };
            Change { span, new }
        }
    }
}

fn insert(array: Node<'_>, place: usize, value: &Value, layout: &Layout) -> Change {
    let inside = layout.inside(array);
    let at = array.elements().nth(place).map_or(array.span().end, |next| next.span().start);
    let new = inside.value(value, &inside.indent_of_entries(array));
    Change { span: at..at, new: format!("{new},{}", inside.before_entry(array)) }
}
