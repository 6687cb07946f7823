//! One layer as data: the values of a TOML text with the place of each, or the values of `key=value`
//! words.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Number, Value};
use toml_edit::{Document, Item, TableLike, Value as TomlValue};

use crate::error::ConfigError;
use crate::key;
use crate::origin::{Layer, Origin};
use crate::schema;

/// One layer.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) layer: Layer,
    pub(crate) file: Option<PathBuf>,
    pub(crate) value: Value,
    /// Line and column of each key and array element.
    places: BTreeMap<String, (u32, u32)>,
    /// The variable of each key, if the layer is the environment.
    variables: BTreeMap<String, String>,
}

impl Parsed {
    /// Reads a file's text.
    pub(crate) fn file(layer: Layer, file: &Path, text: &str) -> Result<Self, ConfigError> {
        let place = |offset: usize| line_and_column(text, offset);
        let invalid = |offset: Option<usize>, problem: String| {
            let at = offset.map(place);
            ConfigError::Invalid {
                origin: Origin {
                    layer,
                    file: Some(file.to_owned()),
                    variable: None,
                    line: at.map(|at| at.0),
                    column: at.map(|at| at.1),
                },
                problem,
                fix: "correct the file; until then its rules cannot be trusted, so nothing of it is used".into(),
            }
        };
        let document = Document::parse(text).map_err(|error| {
            invalid(error.span().map(|span| span.start), error.message().replace('\n', " "))
        })?;
        let mut reader = Reader { offsets: BTreeMap::new() };
        let value = reader
            .table(document.as_table(), "")
            .map_err(|(offset, problem)| invalid(offset, problem))?;
        let places =
            reader.offsets.into_iter().map(|(path, offset)| (path, place(offset))).collect();
        Ok(Self { layer, file: Some(file.to_owned()), value, places, variables: BTreeMap::new() })
    }

    /// Reads `key=value` words. A value that is no TOML is text, and so is all that a text setting gets.
    pub(crate) fn overrides(words: &[String]) -> Result<Self, ConfigError> {
        let mut root = Value::Object(Map::new());
        for word in words {
            let (path, text) = word.split_once('=').ok_or_else(|| ConfigError::Key {
                problem: format!("`{word}` sets nothing"),
                fix: "write it as key=value, like session.mode=auto".into(),
            })?;
            let names = key::parse(path.trim())?;
            put(&mut root, &names, read_for(&names, text)).map_err(|()| ConfigError::Key {
                problem: format!("`{path}` lies inside a value that is no table"),
                fix: "set each key once".into(),
            })?;
        }
        Ok(Self::without_file(Layer::CommandLine, root, BTreeMap::new()))
    }

    /// Takes variables, each with the names of its key and its text, in this order.
    pub(crate) fn variables<'a>(
        found: impl Iterator<Item = (&'a str, Vec<String>, &'a str)>,
    ) -> Result<Self, ConfigError> {
        let mut root = Value::Object(Map::new());
        let mut variables = BTreeMap::new();
        for (variable, names, text) in found {
            put(&mut root, &names, read_for(&names, text)).map_err(|()| ConfigError::Key {
                problem: format!("{variable} lies inside a value that another variable sets"),
                fix: "set each key once".into(),
            })?;
            variables.insert(key::path(&names), variable.to_owned());
        }
        Ok(Self::without_file(Layer::Environment, root, variables))
    }

    fn without_file(layer: Layer, value: Value, variables: BTreeMap<String, String>) -> Self {
        Self { layer, file: None, value, places: BTreeMap::new(), variables }
    }

    /// Where `path` was written in this layer; the file as a whole if that is not known.
    pub(crate) fn origin(&self, path: &str) -> Origin {
        let place = self.places.get(path);
        Origin {
            layer: self.layer,
            file: self.file.clone(),
            variable: self.variable(path).cloned(),
            line: place.map(|place| place.0),
            column: place.map(|place| place.1),
        }
    }

    /// The variable that sets `path`, or the table or list it is in.
    fn variable(&self, path: &str) -> Option<&String> {
        let holds = |set: &str| {
            path.strip_prefix(set)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        self.variables.iter().find(|(set, _)| holds(set)).map(|(_, variable)| variable)
    }

    /// True if this layer sets `path` or something in it.
    pub(crate) fn has(&self, names: &[String]) -> bool {
        key::find(&self.value, names).is_some()
    }

    /// Takes a value out of the layer.
    pub(crate) fn take(&mut self, names: &[String]) -> Option<Value> {
        let (last, parents) = names.split_last()?;
        let parent = parents.iter().try_fold(&mut self.value, |value, name| value.get_mut(name))?;
        parent.as_object_mut()?.shift_remove(last)
    }
}

/// Reads text as a TOML value, and as plain text where it is none.
pub(crate) fn read_value(text: &str) -> Value {
    let text = text.trim();
    text.parse::<TomlValue>()
        .ok()
        .and_then(|value| Reader { offsets: BTreeMap::new() }.value(&value, "").ok())
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Reads text for one setting: where it takes text, the text is the value, quoted or not.
pub(crate) fn read_for(names: &[String], text: &str) -> Value {
    let value = read_value(text);
    if value.is_string() || !schema::field(names).is_some_and(schema::is_text) {
        return value;
    }
    Value::String(text.trim().to_owned())
}

fn put(into: &mut Value, names: &[String], value: Value) -> Result<(), ()> {
    let Some((name, rest)) = names.split_first() else {
        *into = value;
        return Ok(());
    };
    let slot = into
        .as_object_mut()
        .ok_or(())?
        .entry(name.clone())
        .or_insert_with(|| Value::Object(Map::new()));
    put(slot, rest, value)
}

struct Reader {
    offsets: BTreeMap<String, usize>,
}

type Unreadable = (Option<usize>, String);

impl Reader {
    fn table(&mut self, table: &dyn TableLike, path: &str) -> Result<Value, Unreadable> {
        let mut map = Map::new();
        for (name, item) in table.iter() {
            let path = key::join(path, name);
            let key = table.key(name).and_then(toml_edit::Key::span);
            if let Some(span) = key.or_else(|| item.span()) {
                self.offsets.insert(path.clone(), span.start);
            }
            map.insert(name.to_owned(), self.item(item, &path)?);
        }
        Ok(Value::Object(map))
    }

    fn item(&mut self, item: &Item, path: &str) -> Result<Value, Unreadable> {
        match item {
            Item::None => Ok(Value::Null),
            Item::Value(value) => self.value(value, path),
            Item::Table(table) => self.table(table, path),
            Item::ArrayOfTables(tables) => {
                let mut elements = Vec::with_capacity(tables.len());
                for (index, table) in tables.iter().enumerate() {
                    let path = key::element(path, index);
                    if let Some(span) = table.span() {
                        self.offsets.insert(path.clone(), span.start);
                    }
                    elements.push(self.table(table, &path)?);
                }
                Ok(Value::Array(elements))
            }
        }
    }

    fn value(&mut self, value: &TomlValue, path: &str) -> Result<Value, Unreadable> {
        Ok(match value {
            TomlValue::String(text) => Value::String(text.value().clone()),
            TomlValue::Integer(number) => Value::Number((*number.value()).into()),
            TomlValue::Float(number) => {
                Number::from_f64(*number.value()).map(Value::Number).ok_or_else(|| {
                    (value.span().map(|span| span.start), format!("{path} is no finite number"))
                })?
            }
            TomlValue::Boolean(flag) => Value::Bool(*flag.value()),
            TomlValue::Datetime(time) => Value::String(time.value().to_string()),
            TomlValue::InlineTable(table) => self.table(table, path)?,
            TomlValue::Array(array) => {
                let mut elements = Vec::with_capacity(array.len());
                for (index, element) in array.iter().enumerate() {
                    let path = key::element(path, index);
                    if let Some(span) = element.span() {
                        self.offsets.insert(path.clone(), span.start);
                    }
                    elements.push(self.value(element, &path)?);
                }
                Value::Array(elements)
            }
        })
    }
}

fn line_and_column(text: &str, offset: usize) -> (u32, u32) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before[start..].trim_start_matches('\u{feff}').chars().count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}
