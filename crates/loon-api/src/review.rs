//! Reviews of what a model claims to have completed, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ErrorInfo;
use crate::money::{Cost, Usage};

/// What a completion reviewer came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewVerdict {
    /// The work is done.
    Accepted,
    /// It is not; the findings say why.
    Findings,
    /// There is no verdict: the request failed, or its answer was none. That is no acceptance.
    Failed,
}

/// One review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Review {
    /// What it came to.
    pub verdict: ReviewVerdict,
    /// What is missing or wrong, most important first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Why there is no verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// `provider/model` that judged, if one answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens it used. The turn's count them too.
    #[serde(default)]
    pub usage: Usage,
    /// Money it cost. The turn's counts it too.
    #[serde(default)]
    pub cost: Cost,
}

impl Review {
    /// The review in a sentence, for people.
    pub fn words(&self) -> String {
        match self.verdict {
            ReviewVerdict::Accepted => "the reviewer accepted the work".to_owned(),
            ReviewVerdict::Findings => {
                let count = self.findings.len();
                let plural = if count == 1 { "finding" } else { "findings" };
                format!("the reviewer sent the work back with {count} {plural}")
            }
            ReviewVerdict::Failed => {
                let why = self.error.as_ref().map(|error| error.message.trim_end_matches('.'));
                format!("the review gave no verdict: {}", why.unwrap_or("nobody knows why"))
            }
        }
    }
}

/// What reviews of one turn came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnReview {
    /// The last review accepted the work.
    pub accepted: bool,
    /// Reviews that were asked for.
    pub reviews: u32,
}

impl TurnReview {
    /// What a person should know of it, in a few words.
    pub fn words(&self) -> String {
        let Self { accepted, reviews } = *self;
        let plural = if reviews == 1 { "review" } else { "reviews" };
        let how = if accepted { "accepted" } else { "not accepted" };
        format!("{how} after {reviews} {plural}")
    }
}
