//! What becomes of an answer that broke, and which model of a combo a turn asks first.

use std::sync::Arc;
use std::time::Duration;

use loon_api::event::{EffectRerouted, EffectStatus, Notice, NoticeLevel};
use loon_api::{EffectKey, ErrorCode};
use loon_kernel::{EffectFailure, Route};

use crate::runtime::RuntimeError;
use crate::session::Session;

/// Time between a broken answer and the new request.
const PAUSE: Duration = Duration::from_secs(1);

/// What a turn knows of the models it asked.
#[derive(Default)]
pub(super) struct Failover {
    /// The route of the step under way.
    route: Option<Arc<Route>>,
    /// Those that answered, in the order of their first answer.
    answered: Vec<String>,
    /// The one that answered last.
    last: Option<String>,
    /// Those whose answer broke since the last whole answer.
    broke: Vec<String>,
    /// Those whose answer broke twice in a row, with what broke it; the turn asks them no more.
    left: Vec<(String, String)>,
}

/// Whom to ask after an answer broke.
pub(super) enum Anew {
    Nobody,
    /// The same model.
    Same,
    /// Another one.
    Next {
        from: String,
        to: String,
    },
}

impl Failover {
    /// The route of the next step. A turn stays with the model that answered last, which knows the
    /// conversation in its cache; the others follow in their order.
    pub(super) fn next_route(&mut self, given: &Arc<Route>) -> Arc<Route> {
        let mut route = Route::clone(given);
        if let Some(last) = &self.last {
            route = route.led_by(last);
        }
        for (model, _) in &self.left {
            route = route.without(model).unwrap_or(route);
        }
        let route = Arc::new(route);
        self.route = Some(Arc::clone(&route));
        route
    }

    pub(super) fn note_answer(&mut self, model: &str) {
        if !self.answered.iter().any(|known| known == model) {
            self.answered.push(model.to_owned());
        }
        self.last = Some(model.to_owned());
        self.broke.clear();
    }

    /// The models that answered, if the name `asked` does not say it.
    pub(super) fn models(&self, asked: Option<&str>) -> Vec<String> {
        match self.answered.as_slice() {
            [only] if Some(only.as_str()) == asked => Vec::new(),
            answered => answered.to_vec(),
        }
    }

    /// A model whose answer broke is asked anew once, and then given up for the next one.
    fn note_break(&mut self, model: String, why: &str) -> Anew {
        if !self.broke.contains(&model) {
            self.broke.push(model);
            return Anew::Same;
        }
        let rest = self.route.as_ref().and_then(|route| route.without(&model));
        let Some(rest) = rest else { return Anew::Nobody };
        self.left.push((model.clone(), why.to_owned()));
        Anew::Next { from: model, to: rest.info().name.clone() }
    }

    /// The failure that ends a turn, with what broke the answers of the models it left before.
    pub(super) fn explained(&self, mut failure: EffectFailure) -> EffectFailure {
        let Some(route) = self.route.as_ref().filter(|_| !self.left.is_empty()) else {
            return failure;
        };
        if failure.status == EffectStatus::Failed {
            let last = failure.model.as_deref().unwrap_or(&route.info().name);
            let left = self.left.iter().map(|(model, why)| (model.as_str(), why.as_str()));
            let all = left.chain([(last, failure.error.message.as_str())]);
            let words: Vec<String> = all.map(|(model, why)| format!("{model}: {why}")).collect();
            failure.error.message =
                format!("no model of {} gave a whole answer. {}", route.name(), words.join("; "));
        }
        failure
    }
}

impl Session {
    /// The gate never repeats a request whose answer had begun to arrive. Where such a stream broke
    /// by a passing fault, the turn drops the piece and asks anew, once; after a second break it goes
    /// on to the next model of a combo, if there is one.
    pub(super) async fn ask_anew(
        &mut self,
        key: EffectKey,
        failure: &EffectFailure,
    ) -> Result<bool, RuntimeError> {
        let passing = matches!(
            failure.error.code,
            ErrorCode::Overloaded | ErrorCode::Network | ErrorCode::Protocol
        );
        let broken = failure.streamed && passing && failure.status == EffectStatus::Failed;
        let turn = self.running()?;
        let anew = match (broken, &failure.model) {
            (true, Some(model)) => turn.failover.note_break(model.clone(), &failure.error.message),
            _ => Anew::Nobody,
        };
        turn.asks_anew = !matches!(anew, Anew::Nobody);
        let number = turn.number;
        match anew {
            Anew::Nobody => return Ok(false),
            Anew::Same => {
                let message = format!("{} Asking anew.", super::sentence(&failure.error.message));
                let level = NoticeLevel::Warning;
                let notice = Notice { level, message, hints: Vec::new() };
                self.recorder.pass(Some(number), notice).await;
            }
            Anew::Next { from, to } => {
                let (error, usage, cost) = (failure.error.clone(), failure.usage, failure.cost);
                let rerouted = EffectRerouted { key, from, to, error, usage, cost };
                self.record(Some(number), rerouted).await?;
            }
        }
        Ok(true)
    }

    /// A moment for a server that just broke down. An interrupt ends it.
    pub(super) async fn pause(&mut self) -> Result<(), RuntimeError> {
        let cancel = self.running()?.cancel.clone();
        let moment = self.deps.clock.sleep(PAUSE);
        self.attend(async move {
            tokio::select! {
                () = cancel.cancelled() => {}
                () = moment => {}
            }
        })
        .await
    }
}
