//! Whom a model request may be sent to: one model, or the members of a combo in their order.

use std::sync::Arc;

use loon_api::ModelInfo;

use crate::port::Model;

/// One or more models that can answer the same request, the preferred one first.
#[derive(Clone)]
pub struct Route {
    name: String,
    first: Member,
    others: Vec<Member>,
}

/// A model of a route.
#[derive(Clone)]
pub struct Member {
    /// The model.
    pub model: Arc<dyn Model>,
    /// Most repetitions of a failed request to it; absent leaves it to the gate's policy, which is
    /// never exceeded.
    pub retries: Option<usize>,
}

impl Member {
    /// `provider/model`.
    pub fn name(&self) -> &str {
        &self.model.info().name
    }

    /// The key of the circuit that requests to it go through: that of its provider.
    pub(crate) fn target(&self) -> String {
        let name = self.name();
        let provider = name.split_once('/').map_or(name, |(provider, _)| provider);
        format!("{}{provider}", Route::TARGETS)
    }

    fn window(&self) -> Option<u64> {
        self.model.info().context_tokens
    }

    /// True if its window is known to be larger.
    pub(crate) fn holds_more_than(&self, other: &Self) -> bool {
        matches!((self.window(), other.window()), (Some(mine), Some(other)) if mine > other)
    }
}

impl Route {
    /// What the keys of the circuits of providers begin with.
    pub const TARGETS: &'static str = "provider:";

    /// The route of one model, under its own name.
    pub fn to(model: Arc<dyn Model>) -> Arc<Self> {
        let name = model.info().name.clone();
        let first = Member { model, retries: None };
        Arc::new(Self { name, first, others: Vec::new() })
    }

    /// The route of a combo. Nothing if it has no members.
    pub fn combo(name: String, members: impl IntoIterator<Item = Member>) -> Option<Self> {
        let mut members = members.into_iter();
        let first = members.next()?;
        Some(Self { name, first, others: members.collect() })
    }

    /// The name it was asked for by: `provider/model` or `combo/name`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is known of the model that is asked first.
    pub fn info(&self) -> &ModelInfo {
        self.first.model.info()
    }

    /// Opens the connection of the model that is asked first. Nobody hears of a failure.
    pub async fn warm(&self) {
        self.first.model.warm().await;
    }

    /// The members in their order.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The same members with this one first. The route itself if it has no such member.
    #[must_use]
    pub fn led_by(&self, model: &str) -> Self {
        let (lead, rest): (Vec<&Member>, Vec<&Member>) =
            self.members().partition(|member| member.name() == model);
        let members = lead.into_iter().chain(rest).cloned();
        Self::combo(self.name.clone(), members).unwrap_or_else(|| self.clone())
    }

    /// The route without this member. Nothing if no other is left.
    #[must_use]
    pub fn without(&self, model: &str) -> Option<Self> {
        let others = self.members().filter(|member| member.name() != model).cloned();
        Self::combo(self.name.clone(), others)
    }
}
