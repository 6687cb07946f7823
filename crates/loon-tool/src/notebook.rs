//! Jupyter notebooks (nbformat 4): their cells, and how a call names one.

use std::borrow::Cow;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use crate::json::{Kind, Node};
use crate::text;

/// A notebook of a version we know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notebook<'a> {
    pub(crate) root: Node<'a>,
    cells: Node<'a>,
    pub(crate) minor: u64,
}

/// A cell by its id or its index from 0.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a cell is named by its id or its index from 0")]
pub(crate) enum CellName {
    Index(usize),
    Id(String),
}

impl CellName {
    /// What models are told: an index is as welcome as a string.
    pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

impl std::fmt::Display for CellName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Index(index) => write!(f, "{index}"),
            Self::Id(id) => f.write_str(&text::visible_line(id)),
        }
    }
}

impl<'a> Notebook<'a> {
    /// Reads a notebook. The error says why it is none, or what to do with an old one.
    pub(crate) fn parse(text: &'a str) -> Result<Self, String> {
        let root =
            Node::parse(text).map_err(|problem| format!("it is no valid JSON: {problem}"))?;
        Self::of(root)
    }

    /// The notebook that a JSON text is.
    pub(crate) fn of(root: Node<'a>) -> Result<Self, String> {
        let number = |key| root.get(key).and_then(|node| node.raw().parse::<u64>().ok());
        match number("nbformat") {
            Some(4) => {}
            Some(old @ ..=3) => {
                return Err(format!(
                    "it is a notebook of format {old}, and only format 4 is known. Convert it: \
                     jupyter nbconvert --to notebook --nbformat 4 --inplace FILE"
                ));
            }
            Some(new) => {
                return Err(format!("it is a notebook of format {new}; only format 4 is known."));
            }
            None => {
                return Err("it is no notebook: it has no nbformat. Use read_json.".to_owned());
            }
        }
        match root.get("cells") {
            Some(cells) if cells.kind() == Kind::Array => {
                Ok(Self { root, cells, minor: number("nbformat_minor").unwrap_or(0) })
            }
            _ => Err("it is no valid notebook: it has no list of cells.".to_owned()),
        }
    }

    /// Its cells in order.
    pub(crate) fn cells(self) -> impl Iterator<Item = Cell<'a>> {
        self.cells.elements().map(Cell)
    }

    /// The index of the cell that is meant.
    pub(crate) fn find(self, name: &CellName) -> Result<usize, String> {
        let total = self.cells().count();
        let by_index = match name {
            CellName::Index(index) => Some(*index),
            CellName::Id(id) => {
                let same =
                    self.cells().enumerate().filter(|(_, cell)| cell.id() == Some(id.into()));
                match same.map(|(index, _)| index).collect::<Vec<_>>().as_slice() {
                    [index] => return Ok(*index),
                    [] => id.parse().ok(),
                    several => {
                        let places: Vec<_> = several.iter().map(usize::to_string).collect();
                        let places = places.join(", ");
                        return Err(format!(
                            "several cells have the id {name}: use an index ({places})."
                        ));
                    }
                }
            }
        };
        match by_index {
            Some(index) if index < total => Ok(index),
            _ => Err(format!(
                "there is no cell {name}: it has {}{}. notebook_read shows their ids.",
                text::count(total, "cell"),
                if total > 0 { format!(", 0 to {}", total - 1) } else { String::new() }
            )),
        }
    }

    /// Name of the language its code is in, if it says.
    pub(crate) fn language(self) -> Option<Cow<'a, str>> {
        let metadata = self.root.get("metadata")?;
        let named = |place: &str, key: &str| metadata.get(place)?.get(key)?.string();
        named("kernelspec", "language").or_else(|| named("language_info", "name"))
    }
}

/// One cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell<'a>(pub(crate) Node<'a>);

impl<'a> Cell<'a> {
    /// Its id, if it has one.
    pub(crate) fn id(self) -> Option<Cow<'a, str>> {
        self.0.get("id")?.string()
    }

    /// `code`, `markdown` or `raw`.
    pub(crate) fn kind(self) -> Cow<'a, str> {
        self.0.get("cell_type").and_then(Node::string).unwrap_or(Cow::Borrowed("unknown"))
    }

    /// Its text.
    pub(crate) fn source(self) -> String {
        self.0.get("source").map(joined).unwrap_or_default()
    }
}

/// A text that is written as one string or as a list of lines.
pub(crate) fn joined(node: Node<'_>) -> String {
    match node.string() {
        Some(text) => text.into_owned(),
        None => node.elements().filter_map(Node::string).collect(),
    }
}
