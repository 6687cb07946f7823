//! Model requests: sent along a route of models until one answers, metered in every case.

mod attempts;
mod estimate;
mod meter;
mod reroute;

use std::sync::Arc;

use loon_api::event::{EffectFinished, EffectKind, EffectStarted, EffectStatus, ItemCompleted};
use loon_api::{AgentEvent, Answer, At, Cost, ErrorInfo, Item, StopReason, Usage};
use serde::{Deserialize, Serialize};

use self::attempts::Attempts;
use self::meter::{Meter, Spent};
use self::reroute::{Found, Heirs, Tried};
use super::digest::request_digest;
use super::run::Limits;
use super::unmasked::{items_of, unmasked};
use super::{EffectFailure, Gate, ModelEffect, ModelOutcome, Stop};
use crate::clock::millis;
use crate::error::KernelError;
use crate::route::Member;

/// What is noted with the end of a request, so that it can be given back later.
#[derive(Serialize, Deserialize)]
pub(super) struct ModelNote {
    /// Why the answer ended.
    pub(super) stop: StopReason,
    /// How many records right before the end hold its items.
    pub(super) items: u64,
    /// The model that answered.
    #[serde(default)]
    pub(super) model: String,
    /// The answer's text, where it is no item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) words: Option<String>,
}

/// What is noted with a failed end.
#[derive(Serialize, Deserialize)]
pub(super) struct FailureNote {
    /// The model it failed at.
    pub(super) model: String,
}

/// A request that ends without an answer.
struct Unanswered {
    status: EffectStatus,
    error: ErrorInfo,
    /// The model it ended at, if one was asked.
    model: Option<String>,
}

/// Why sending a request came to its end without an answer.
enum Broken {
    Unanswered(Unanswered),
    /// The journal cannot be written.
    Journal(KernelError),
}

impl From<KernelError> for Broken {
    fn from(error: KernelError) -> Self {
        Self::Journal(error)
    }
}

impl Broken {
    fn denied(stop: Stop) -> Self {
        Self::unanswered(stop.status, stop.error, None)
    }

    fn unanswered(status: EffectStatus, error: ErrorInfo, model: Option<&Member>) -> Self {
        let model = model.map(|member| member.name().to_owned());
        Self::Unanswered(Unanswered { status, error, model })
    }
}

impl Gate {
    /// Performs a model request. Its items, made by `items` from the answer, are recorded together
    /// with its end. A member of a combo that cannot answer gives way to the next one, unless some of
    /// its answer had arrived.
    pub async fn model(
        &self,
        effect: ModelEffect<'_>,
        items: impl FnOnce(&Answer) -> Vec<Item>,
    ) -> Result<ModelOutcome, EffectFailure> {
        self.answered(effect, |answer| (items(answer), None)).await
    }

    /// Performs a model request for words that are no part of the transcript. They are recorded with
    /// its end. `words` takes them from the answer.
    pub async fn words(
        &self,
        effect: ModelEffect<'_>,
        words: impl FnOnce(&Answer) -> String,
    ) -> Result<ModelOutcome, EffectFailure> {
        self.answered(effect, |answer| (Vec::new(), Some(words(answer)))).await
    }

    async fn answered(
        &self,
        mut effect: ModelEffect<'_>,
        take: impl FnOnce(&Answer) -> (Vec<Item>, Option<String>),
    ) -> Result<ModelOutcome, EffectFailure> {
        let recorder = self.execution.recorder();
        let known = recorder.with_state(|state| state.effects.get(&effect.key).cloned());
        if let Some(known) = known {
            return self.replay_model(&effect.key, &known).await;
        }
        let _in_flight = self.execution.enter();
        let mut meter = Meter::default();
        let admitted = self.admit(&effect.cancel, true).await.map_err(Broken::denied);
        // Waiting for a person is no part of the effect.
        let began = recorder.now();
        let sent = match admitted {
            Ok(()) => self.send(&mut effect, &mut meter).await,
            Err(denied) => Err(denied),
        };
        let (answer, model) = match sent {
            Ok(answered) => answered,
            Err(Broken::Unanswered(end)) => {
                return Err(self.fail(&effect, began, meter, end).await);
            }
            Err(Broken::Journal(error)) => return Err(unrecorded(&error)),
        };
        let (items, words) = take(&answer);
        let words = words.map(|words| recorder.redactor().text(words));
        let note = ModelNote {
            stop: answer.stop,
            items: items.len() as u64,
            model: model.clone(),
            words: words.clone(),
        };
        let mut records: Vec<AgentEvent> =
            items.iter().map(|item| ItemCompleted { item: item.clone() }.into()).collect();
        let mut end = self.end_of(&effect, began, &meter, EffectStatus::Completed, None);
        end.output = serde_json::to_value(note).ok();
        records.push(end.into());
        let Spent { usage, cost } = meter.all;
        let records = recorder
            .record_all(Some(effect.turn), records)
            .await
            .map_err(|error| EffectFailure { usage, cost, ..unrecorded(&error) })?;
        self.tell_metered(&meter).await;
        let recorded = items_of(&records);
        let unmasked = unmasked(&items, &recorded);
        let stop = answer.stop;
        Ok(ModelOutcome { items: recorded, words, unmasked, stop, usage, cost, model })
    }

    /// Sends the request along its route. Gives the answer and the name of the model that gave it.
    async fn send(
        &self,
        effect: &mut ModelEffect<'_>,
        meter: &mut Meter,
    ) -> Result<(Answer, String), Broken> {
        let cancel = effect.cancel.clone();
        let route = Arc::clone(&effect.model);
        let members: Vec<&Member> = route.members().collect();
        let mut rest = members.iter().copied();
        let mut tried = Tried::default();
        let Some(found) = self.next_open(&mut rest, &mut tried, Heirs::All) else {
            return Err(Broken::unanswered(EffectStatus::Failed, tried.error(&route), None));
        };
        let started = EffectStarted {
            key: effect.key.clone(),
            kind: EffectKind::Model,
            target: route.info().name.clone(),
            item: None,
            timeout_ms: effect.timeout.map(millis),
            request: Some(request_digest(&effect.request.messages)),
        };
        self.execution.recorder().record(Some(effect.turn), started).await?;
        let began = self.first_began(&effect.key);
        let limits = Limits { cancel: &cancel, timeout: effect.timeout.map(|t| (began, t)) };
        let Found { mut member, mut permit, change } = found;
        self.note_reroutes(effect, &mut tried, member).await?;
        self.tell_circuit(effect.turn, change).await;
        loop {
            let has_heir = rest.clone().any(|heir| self.is_open_to(heir));
            let asking = self.attempts(effect, member, permit, has_heir, &limits, meter);
            let attempts = Box::pin(asking).await?;
            let (status, error) = match attempts {
                Attempts::Answered(answer) => return Ok((answer, member.name().to_owned())),
                Attempts::Failed(status, error) => (status, error),
            };
            let Some(heirs) = Heirs::of(member, status, &error, meter.streamed) else {
                return Err(Broken::unanswered(status, error, Some(member)));
            };
            tried.add(member, error, meter.leave());
            // Before a circuit lets it pass: a trial must not wait for a person.
            if rest.clone().any(|heir| heirs.include(heir) && self.is_open_to(heir)) {
                let own = meter.resources();
                self.admit_beside(&effect.cancel, true, &own).await.map_err(Broken::denied)?;
            }
            let Some(found) = self.next_open(&mut rest, &mut tried, heirs) else {
                let error = tried.error(&route);
                return Err(Broken::unanswered(status, error, Some(member)));
            };
            self.note_reroutes(effect, &mut tried, found.member).await?;
            self.tell_circuit(effect.turn, found.change).await;
            (member, permit) = (found.member, found.permit);
        }
    }

    /// Records a failed end and makes the failure.
    async fn fail(
        &self,
        effect: &ModelEffect<'_>,
        began: At,
        meter: Meter,
        unanswered: Unanswered,
    ) -> EffectFailure {
        let Unanswered { status, error, model } = unanswered;
        let mut end = self.end_of(effect, began, &meter, status, Some(error.clone()));
        let note = model.clone().map(|model| FailureNote { model });
        end.output = note.and_then(|note| serde_json::to_value(note).ok());
        let Spent { usage, cost } = meter.all;
        let failure = EffectFailure { status, error, usage, cost, streamed: meter.streamed, model };
        let recorded = self.execution.recorder().record(Some(effect.turn), end).await;
        self.tell_metered(&meter).await;
        match recorded {
            Ok(_) => failure,
            // The cancel that stopped this effect has settled it already.
            Err(KernelError::Cancelled { .. }) if status == EffectStatus::Aborted => failure,
            Err(error) => EffectFailure { usage, cost, ..unrecorded(&error) },
        }
    }

    /// Tells the front end what was used, and of which models it is not surely known.
    async fn tell_metered(&self, meter: &Meter) {
        self.tree.tell().await;
        for model in &meter.unpriced {
            self.tree.tell_unpriced(model).await;
        }
        for model in &meter.uncounted {
            self.tree.tell_uncounted(model).await;
        }
    }

    fn end_of(
        &self,
        effect: &ModelEffect<'_>,
        began: At,
        meter: &Meter,
        status: EffectStatus,
        error: Option<ErrorInfo>,
    ) -> EffectFinished {
        EffectFinished {
            key: effect.key.clone(),
            status,
            error,
            ms: millis(self.execution.recorder().now().since(began)),
            usage: meter.all.usage,
            cost: meter.all.cost,
            output: None,
        }
    }
}

/// The failure of an effect whose records could not be written.
pub(super) fn unrecorded(error: &KernelError) -> EffectFailure {
    let status = match error {
        KernelError::Cancelled { .. } | KernelError::Expired { .. } => EffectStatus::Aborted,
        KernelError::Store(_) | KernelError::Ended { .. } | KernelError::Interrupted { .. } => {
            EffectStatus::Failed
        }
    };
    EffectFailure {
        status,
        error: error.info(),
        usage: Usage::default(),
        cost: Cost::default(),
        streamed: false,
        model: None,
    }
}
