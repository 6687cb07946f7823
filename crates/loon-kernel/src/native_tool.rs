//! What native tools of all crates share: typed arguments, a derived schema, and the adapter that
//! makes one a [`Tool`] behind the gate.

use std::sync::Arc;
use std::time::Duration;

use loon_api::{BoxFuture, EffectKey, Subject, ToolClass, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize as _, de::DeserializeOwned};
use serde_json::Value;

use crate::port::{Admitted, EffectContext, Tool, ToolOutput};

/// A native tool: a file of its own, with a Rust type for its arguments.
pub trait NativeTool: Send + Sync + 'static {
    /// The arguments. Doc comments become the descriptions the model reads: keep them short.
    type Args: DeserializeOwned + JsonSchema + Send + Sync;

    /// Name the model calls it by.
    const NAME: &'static str;
    /// What it does and when to use it, in one to three short sentences.
    const DESCRIPTION: &'static str;
    /// What it does to the world.
    const CLASS: ToolClass;

    /// What to show beside the name, one line.
    fn title(&self, args: &Self::Args) -> String;

    /// What the call would touch. The error is what the model reads.
    fn subjects(&self, args: &Self::Args) -> Result<Vec<Subject>, String>;

    /// A unified diff for the human who is asked.
    fn preview(&self, _args: &Self::Args) -> Option<String> {
        None
    }

    /// How long it may take.
    fn timeout(&self, _args: &Self::Args) -> Option<Duration> {
        None
    }

    /// What it keeps running between calls, one line each.
    fn running(&self) -> Vec<String> {
        Vec::new()
    }

    /// Hears that the outcome of one of its calls is recorded.
    fn recorded(&self, _key: &EffectKey) {}

    /// Makes the call.
    fn run(&self, args: Self::Args, cx: &EffectContext) -> impl Future<Output = ToolOutput> + Send;
}

/// Most bytes of a title, and of the reason why a call cannot be made: both may hold arguments, and
/// those may have any length.
const TITLE: usize = 2000;
const REASON: usize = 8 * 1024;

/// Puts a native tool behind the gate's port.
pub fn native_tool<T: NativeTool>(tool: T) -> Arc<dyn Tool> {
    Arc::new(Native::new(tool))
}

struct Native<T> {
    tool: T,
    spec: ToolSpec,
}

impl<T: NativeTool> Native<T> {
    fn new(tool: T) -> Self {
        let spec = ToolSpec {
            name: T::NAME.to_owned(),
            description: T::DESCRIPTION.to_owned(),
            parameters: parameters::<T::Args>(),
            class: T::CLASS,
        };
        Self { tool, spec }
    }
}

fn parse<T: NativeTool>(arguments: &Value) -> Result<T::Args, String> {
    if let Value::String(raw) = arguments {
        return Err(format!("The arguments of {} are not valid JSON: {raw}", T::NAME));
    }
    // As they are first: where a tool takes any value, null is one.
    T::Args::deserialize(arguments)
        .or_else(|_| serde_json::from_value(without_nulls(arguments.clone())))
        .map_err(|error| format!("Wrong arguments for {}: {error}.", T::NAME))
}

fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
    text
}

/// Some models fill every optional member with null; that is the same as leaving it out.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, member)| !member.is_null())
            .map(|(name, member)| (name, without_nulls(member)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

impl<T: NativeTool> Tool for Native<T> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn title(&self, arguments: &Value) -> String {
        let title = parse::<T>(arguments).map(|args| self.tool.title(&args));
        cut(title.unwrap_or_default(), TITLE)
    }

    fn subjects(&self, arguments: &Value) -> Result<Vec<Subject>, String> {
        let subjects = parse::<T>(arguments).and_then(|args| self.tool.subjects(&args));
        subjects.map_err(|reason| cut(reason, REASON))
    }

    fn preview(&self, arguments: &Value) -> Option<String> {
        self.tool.preview(&parse::<T>(arguments).ok()?)
    }

    fn timeout(&self, arguments: &Value) -> Option<Duration> {
        self.tool.timeout(&parse::<T>(arguments).ok()?)
    }

    fn running(&self) -> Vec<String> {
        self.tool.running()
    }

    fn recorded(&self, key: &EffectKey) {
        self.tool.recorded(key);
    }

    fn run<'a>(
        &'a self,
        admitted: Admitted,
        arguments: &'a Value,
        cx: &'a EffectContext,
    ) -> BoxFuture<'a, ToolOutput> {
        drop(admitted);
        Box::pin(async move {
            match parse::<T>(arguments) {
                Ok(args) => self.tool.run(args, cx).await,
                Err(text) => ToolOutput::error(text),
            }
        })
    }
}

/// The schema of `A` without what costs tokens and tells the model nothing: dialect, titles, number
/// formats, null alternatives of optional members.
fn parameters<A: JsonSchema>() -> Value {
    let mut generator = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator();
    let mut schema = generator.root_schema_for::<A>().to_value();
    slim(&mut schema);
    if let Value::Object(map) = &mut schema {
        map.remove("description");
        map.entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    schema
}

fn slim(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    for noise in ["$schema", "title", "format", "minimum", "default"] {
        map.remove(noise);
    }
    if let Some(Value::Array(types)) = map.get("type")
        && let [one, null] = types.as_slice()
        && null == "null"
    {
        let one = one.clone();
        map.insert("type".to_owned(), one);
    }
    if let Some(Value::Array(choices)) = map.get_mut("enum") {
        choices.retain(|choice| !choice.is_null());
    }
    if let Some(Value::Array(variants)) = map.get("anyOf")
        && let [one, null] = variants.as_slice()
        && null.get("type").is_some_and(|kind| kind == "null")
        && let Value::Object(inner) = one.clone()
    {
        map.remove("anyOf");
        for (key, value) in inner {
            map.entry(key).or_insert(value);
        }
    }
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(slim);
    }
    if let Some(items) = map.get_mut("items") {
        slim(items);
        // What the list is for stands beside it.
        if let Value::Object(item) = items {
            item.remove("description");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Arguments of all the shapes that tools use.
    #[derive(Debug, PartialEq, serde::Deserialize, JsonSchema)]
    struct Args {
        /// Where.
        path: String,
        /// How many.
        limit: Option<u32>,
        #[serde(default)]
        deep: bool,
        parts: Option<Vec<Part>>,
    }

    #[derive(Debug, PartialEq, serde::Deserialize, JsonSchema)]
    struct Part {
        name: Option<String>,
    }

    #[test]
    fn the_schema_holds_only_what_tells_the_model_something() {
        assert_eq!(
            parameters::<Args>(),
            json!({
                "type": "object",
                "properties": {
                    "path": {"description": "Where.", "type": "string"},
                    "limit": {"description": "How many.", "type": "integer"},
                    "deep": {"type": "boolean"},
                    "parts": {
                        "type": "array",
                        "items": {"type": "object", "properties": {"name": {"type": "string"}}},
                    },
                },
                "required": ["path"],
            })
        );
    }

    #[test]
    fn null_members_are_left_out() {
        let arguments = without_nulls(json!({
            "path": "a", "limit": null, "deep": null, "parts": [{"name": null}],
        }));
        let args: Args = serde_json::from_value(arguments).unwrap();
        let parts = Some(vec![Part { name: None }]);
        assert_eq!(args, Args { path: "a".into(), limit: None, deep: false, parts });
    }

    /// A tool that takes any value.
    struct Keeper;

    #[derive(Debug, PartialEq, serde::Deserialize, JsonSchema)]
    struct Kept {
        #[serde(default, deserialize_with = "given")]
        value: Option<Value>,
        #[serde(default)]
        deep: bool,
    }

    fn given<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
        Value::deserialize(value).map(Some)
    }

    impl NativeTool for Keeper {
        type Args = Kept;

        const NAME: &'static str = "keeper";
        const DESCRIPTION: &'static str = "Keeps.";
        const CLASS: ToolClass = ToolClass::Reads;

        fn title(&self, args: &Kept) -> String {
            args.value.as_ref().map(Value::to_string).unwrap_or_default()
        }

        fn subjects(&self, _args: &Kept) -> Result<Vec<Subject>, String> {
            Ok(Vec::new())
        }

        async fn run(&self, _args: Kept, _cx: &EffectContext) -> ToolOutput {
            ToolOutput::default()
        }
    }

    #[test]
    fn null_is_a_value_where_any_value_is_taken() {
        let kept = |arguments| parse::<Keeper>(&arguments).unwrap();
        let value = json!({"a": null, "b": [{"c": null}]});
        assert_eq!(kept(json!({"value": value})), Kept { value: Some(value), deep: false });
        assert_eq!(kept(json!({"value": null})).value, Some(Value::Null));
        assert_eq!(kept(json!({"deep": null})), Kept { value: None, deep: false });
    }

    #[test]
    fn what_is_said_of_arguments_has_bounds() {
        let (tool, long) = (native_tool(Keeper), "\u{e9}".repeat(100_000));
        let title = tool.title(&json!({ "value": long.clone() }));
        assert!(title.len() < 2 * TITLE && title.ends_with("\u{e9}…"), "{} bytes", title.len());
        for wrong in [Value::String(long.clone()), json!({ "deep": long })] {
            let reason = tool.subjects(&wrong).unwrap_err();
            assert!(reason.len() < 2 * REASON && reason.ends_with('…'), "{} bytes", reason.len());
        }
        assert_eq!(tool.title(&json!({ "value": 1 })), "1");
    }
}
