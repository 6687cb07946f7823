//! Tools of the settings: programs of the user, each in a process of its own, asked in lines of JSON.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jsonschema::Validator;
use loon_api::{BoxFuture, Subject, ToolClass, ToolSpec};
use loon_exec::Spawner;
use loon_kernel::{Admitted, EffectContext, IsolatedError, IsolatedTool, Tool, ToolOutput};
use serde_json::Value;

use crate::text;

/// Most characters of the arguments in a title.
const TITLE: usize = 120;

/// A tool as settings describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserToolConfig {
    /// Name the model calls it by.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its arguments, as text.
    pub parameters: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How long a call may take; absent is the session's default.
    pub timeout: Option<Duration>,
    /// Start the program with the session rather than with the first call.
    pub warm: bool,
}

/// Runs a program of the user. Whatever it is asked, what is judged is its command line.
pub struct UserTool {
    spec: ToolSpec,
    validator: Validator,
    subject: Subject,
    timeout: Option<Duration>,
    warm: bool,
    program: IsolatedTool,
}

impl UserTool {
    /// Checks the description. The error says what is wrong with it, and does not name the tool.
    pub fn new(config: UserToolConfig, cwd: &Path, spawner: &Spawner) -> Result<Self, String> {
        let name = &config.name;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if name.is_empty() || name.len() > 64 || !name.bytes().all(is_plain) {
            return Err("a name has 1 to 64 letters, digits, _ or -".to_owned());
        }
        let [program, arguments @ ..] = config.command.as_slice() else {
            return Err("`command` is empty".to_owned());
        };
        let parameters: Value = serde_json::from_str(&config.parameters)
            .map_err(|error| format!("`parameters` is no JSON: {error}"))?;
        if parameters.get("type").and_then(Value::as_str) != Some("object") {
            return Err("`parameters` must be a JSON Schema of type object".to_owned());
        }
        let validator = jsonschema::validator_for(&parameters)
            .map_err(|error| format!("`parameters` is no JSON Schema: {error}"))?;
        let words = config.command.iter().map(String::as_str);
        let line = shlex::try_join(words).map_err(|error| format!("`command`: {error}"))?;
        let (program, arguments) = (program.clone(), arguments.to_vec());
        let (spawner, folder) = (spawner.clone(), cwd.to_owned());
        Ok(Self {
            spec: ToolSpec {
                name: config.name,
                description: config.description,
                parameters,
                class: ToolClass::Executes,
            },
            validator,
            subject: Subject::Command { line, cwd: cwd.to_owned() },
            timeout: config.timeout,
            warm: config.warm,
            program: IsolatedTool::new(move || {
                spawner.program(&program, &folder).args(arguments.clone()).unattended()
            }),
        })
    }
}

impl Tool for UserTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn title(&self, arguments: &Value) -> String {
        text::visible_line(&arguments.to_string()).chars().take(TITLE).collect()
    }

    fn subjects(&self, arguments: &Value) -> Result<Vec<Subject>, String> {
        match self.validator.validate(arguments) {
            Ok(()) => Ok(vec![self.subject.clone()]),
            Err(error) => Err(format!("The arguments do not fit: {error}")),
        }
    }

    fn timeout(&self, _: &Value) -> Option<Duration> {
        self.timeout
    }

    fn warm(&self) {
        if self.warm {
            self.program.warm();
        }
    }

    fn run<'a>(
        &'a self,
        admitted: Admitted,
        arguments: &'a Value,
        cx: &'a EffectContext,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            match self.program.call(admitted, arguments, &cx.cancel).await {
                Ok(Value::String(words)) => ToolOutput::ok(text::visible(&words), ""),
                Ok(value) => ToolOutput::ok(text::visible(&value.to_string()), ""),
                Err(IsolatedError::Failed(words)) => ToolOutput::error(text::visible(&words)),
                Err(error) => {
                    ToolOutput::error(text::visible(&format!("The call failed: {error}.")))
                }
            }
        })
    }
}

/// Makes the tools of the settings. What cannot be used is told by name, with the reason.
pub fn user_tools(
    configs: &[UserToolConfig],
    cwd: &Path,
    spawner: &Spawner,
) -> (Vec<Arc<dyn Tool>>, Vec<String>) {
    let (mut tools, mut wrong): (Vec<Arc<dyn Tool>>, _) = (Vec::new(), Vec::new());
    for config in configs {
        let name = config.name.clone();
        match UserTool::new(config.clone(), cwd, spawner) {
            Ok(tool) => tools.push(Arc::new(tool)),
            Err(why) => wrong.push(format!("The tool of tools.{name} cannot be used: {why}.")),
        }
    }
    (tools, wrong)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(name: &str) -> UserToolConfig {
        UserToolConfig {
            name: name.to_owned(),
            description: "Counts.".to_owned(),
            parameters:
                r#"{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}"#
                    .to_owned(),
            command: vec!["./count it".to_owned(), "--fast".to_owned()],
            timeout: None,
            warm: false,
        }
    }

    fn make(config: UserToolConfig) -> Result<UserTool, String> {
        UserTool::new(config, Path::new("/w"), &Spawner::default())
    }

    #[test]
    fn arguments_are_held_against_the_schema_and_the_command_line_is_judged() {
        let tool = make(config("count")).unwrap();
        let subject = Subject::Command { line: "'./count it' --fast".into(), cwd: "/w".into() };
        assert_eq!(tool.subjects(&json!({"n": 1})), Ok(vec![subject]));
        assert!(tool.subjects(&json!({"n": "1"})).unwrap_err().contains("do not fit"));
        assert!(!tool.spec().class.allowed_in_plan_mode());
    }

    #[test]
    fn a_description_that_cannot_be_used_is_told_by_name() {
        let wrong = [
            config("no spaces"),
            UserToolConfig { command: vec![], ..config("empty") },
            UserToolConfig { parameters: "[]".to_owned(), ..config("list") },
            UserToolConfig { parameters: "{".to_owned(), ..config("cut") },
            config("count"),
        ];
        let (tools, told) = user_tools(&wrong, Path::new("/w"), &Spawner::default());
        let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        assert_eq!((names, told.len()), (vec!["count"], 4), "{told:?}");
        assert_eq!(told[1], "The tool of tools.empty cannot be used: `command` is empty.");
    }
}
