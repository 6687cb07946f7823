//! Answers that must match a JSON Schema.

use jsonschema::Validator;
use serde_json::Value;

/// A schema the last answer of a turn is held to.
pub(crate) struct AnswerSchema {
    validator: Validator,
    schema: Value,
}

impl AnswerSchema {
    /// Compiles a schema; the error says what is wrong with it.
    pub(crate) fn new(schema: &Value) -> Result<Self, String> {
        let validator = jsonschema::validator_for(schema).map_err(|error| error.to_string())?;
        Ok(Self { validator, schema: schema.clone() })
    }

    /// The schema itself.
    pub(crate) fn schema(&self) -> &Value {
        &self.schema
    }

    /// Checks an answer; the error tells the model what to mend. A code fence around the JSON is
    /// tolerated.
    pub(crate) fn check(&self, answer: &str) -> Result<(), String> {
        let value: Value = serde_json::from_str(strip_fence(answer))
            .map_err(|error| format!("the answer is not JSON: {error}"))?;
        let problems: Vec<String> = self
            .validator
            .iter_errors(&value)
            .take(5)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    }
}

fn strip_fence(answer: &str) -> &str {
    let answer = answer.trim();
    let Some(inner) = answer.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else {
        return answer;
    };
    inner.split_once('\n').map_or(answer, |(_, body)| body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_are_held_to_the_schema_and_errors_name_the_place() {
        let schema =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let schema = AnswerSchema::new(&schema).unwrap();
        assert_eq!(schema.check("```json\n{\"n\": 1}\n```"), Ok(()));
        assert!(schema.check("{\"n\": \"x\"}").unwrap_err().contains("/n"));
        assert!(schema.check("one").unwrap_err().contains("not JSON"));
        assert!(AnswerSchema::new(&json!({"type": "nonsense"})).is_err());
    }
}
