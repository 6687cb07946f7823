//! Combos: models that stand in for each other, and which of them are fit to.
//!
//! What is not known of a model does not count for it: a member is left out unless it is known to
//! have what the combo needs. Each one that is left out has a reason in words.

use std::sync::Arc;

use loon_api::{Effort, ErrorCode, ErrorInfo, ModelFeature};
use loon_kernel::{Member, Model, Route};

use crate::provider::ProviderKind;

/// What the names of combos begin with.
pub const PREFIX: &str = "combo/";

/// A combo as settings describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Combo {
    /// Its name, without [`PREFIX`].
    pub name: String,
    /// The models as `provider/model`, the preferred one first.
    pub members: Vec<String>,
    /// How often a failed request to a member is repeated.
    pub retries: usize,
    /// What a member must be able to do.
    pub needs: Vec<ModelFeature>,
    /// Tokens that a member's window must hold.
    pub min_context: Option<u64>,
}

/// A model that a combo names.
pub struct Candidate {
    /// The model.
    pub model: Arc<dyn Model>,
    /// What it is known to be able to do.
    pub features: Vec<ModelFeature>,
}

/// A combo with its members looked up.
pub struct Resolved {
    name: String,
    /// Each name of a member, with the member or the reason why it is left out.
    pub members: Vec<(String, Result<Member, String>)>,
}

/// What a model is known to be able to do: what the settings say, else what every model behind its
/// wire format can. Loom offers tools to any model, so those are taken for granted.
pub fn features(
    kind: ProviderKind,
    said: Option<&[ModelFeature]>,
    effort: Option<Effort>,
) -> Vec<ModelFeature> {
    if let Some(said) = said {
        return said.to_vec();
    }
    let mut known = vec![ModelFeature::Tools];
    if kind == ProviderKind::OpenaiResponses {
        known.push(ModelFeature::StructuredOutput);
    }
    if effort.is_some() {
        known.push(ModelFeature::Reasoning);
    }
    known
}

impl Combo {
    /// Its name as a model's is written.
    pub fn full_name(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }

    /// Looks its members up with `find` and judges them.
    pub fn resolve(&self, find: impl Fn(&str) -> Result<Candidate, ErrorInfo>) -> Resolved {
        let mut members: Vec<(String, Result<Member, String>)> = Vec::new();
        for name in &self.members {
            let member = if members.iter().any(|(known, _)| known == name) {
                Err("it is named twice".to_owned())
            } else if name.starts_with(PREFIX) {
                Err("a combo cannot be part of a combo".to_owned())
            } else {
                find(name).map_err(|error| error.message).and_then(|found| self.judge(found))
            };
            members.push((name.clone(), member));
        }
        Resolved { name: self.full_name(), members }
    }

    fn judge(&self, found: Candidate) -> Result<Member, String> {
        let lacks: Vec<&str> = self
            .needs
            .iter()
            .filter(|need| !found.features.contains(need))
            .map(|need| need.name())
            .collect();
        if !lacks.is_empty() {
            return Err(format!(
                "it is not known to have {}; `features` in the model's settings says what it has",
                lacks.join(" and ")
            ));
        }
        match (self.min_context, found.model.info().context_tokens) {
            (Some(least), Some(window)) if window < least => {
                Err(format!("its window of {window} tokens is smaller than {least}"))
            }
            (Some(_), None) => Err("its window is not known; set `context_tokens` in the model's \
                                    settings"
                .to_owned()),
            _ => Ok(Member { model: found.model, retries: Some(self.retries) }),
        }
    }
}

impl Resolved {
    /// The route through the members that are fit, or an error that says why none is.
    pub fn route(self) -> Result<Arc<Route>, ErrorInfo> {
        let mut fit = Vec::new();
        let mut reasons = Vec::new();
        for (name, member) in self.members {
            match member {
                Ok(member) => fit.push(member),
                Err(reason) => reasons.push(format!("{name}: {reason}")),
            }
        }
        let Some(route) = Route::combo(self.name.clone(), fit) else {
            let message =
                format!("No member of {} can be used. {}.", self.name, reasons.join("; "));
            return Err(ErrorInfo::new(ErrorCode::Invalid, message)
                .hint("`loon models list` shows what is known of the members."));
        };
        Ok(Arc::new(route))
    }
}

#[cfg(test)]
mod tests;
