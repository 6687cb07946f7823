//! Who reviews what a model claims to have completed.

use schemars::JsonSchema;
use serde::Deserialize;

/// Ultra Loop: what a model claims to have completed is reviewed before its turn ends.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Supervisor {
    /// Sessions begin with Ultra Loop switched on. `/ultra` and `loon exec --ultra` choose for one
    /// session, which keeps its choice.
    #[schemars(title = "Ultra Loop", extend("x-live" = true))]
    pub enabled: bool,
    /// The reviewer's model, as `provider/model`. Without it, the session's own model reviews.
    #[schemars(title = "Reviewer", extend("x-live" = true))]
    pub model: Option<String>,
    /// Most reviews of one turn. What none of them accepts ends as not accepted.
    #[schemars(title = "Reviews", range(min = 1, max = 100), extend("x-live" = true))]
    pub max_reviews: u32,
}

impl Default for Supervisor {
    fn default() -> Self {
        Self { enabled: false, model: None, max_reviews: 3 }
    }
}
