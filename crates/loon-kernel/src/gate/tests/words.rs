//! Requests for words that are no part of a transcript, and attempts that begin anew.

use std::sync::Arc;
use std::time::Duration;

use loon_api::{At, BoxFuture, EffectKey, ModelError, ModelErrorKind};

use super::super::ModelEffect;
use super::{FakeModel, answer, ask, house, options, request, said, tokens};
use crate::port::{Follow, Progress};

#[tokio::test]
async fn words_are_recorded_with_the_end_and_given_back() {
    let house = house(None).await;
    let gate = house.gate(options(vec![]));
    let model = Arc::new(FakeModel::new([Ok(answer("a handoff", tokens(9, 3)))]));
    let key = EffectKey::summary("d1", 0);
    assert!(gate.recorded(&key).await.is_none());
    let request = request();
    let effect = ModelEffect { key: key.clone(), ..ask(0, &model, &request) };
    let outcome = gate.words(effect, |_| "a handoff".to_owned()).await.unwrap();
    assert_eq!(outcome.words.as_deref(), Some("a handoff"));
    assert!(outcome.items.is_empty());
    assert_eq!(house.kinds(), ["effect.started", "effect.finished"]);
    assert_eq!(gate.recorded(&key).await.unwrap().unwrap(), outcome);
    assert!(key.is_summary() && !EffectKey::model(1, 0).is_summary());
}

/// Notes when attempts begin.
struct Beginnings(Vec<At>);

impl Follow for Beginnings {
    fn begin(&mut self, at: At) {
        self.0.push(at);
    }

    fn take(&mut self, _: Progress) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test]
async fn h015_each_attempt_is_told_when_it_begins() {
    let house = house(None).await;
    let gate = house.gate(options(vec![]));
    let busy = ModelError::new(ModelErrorKind::Overloaded, "busy");
    let model = Arc::new(FakeModel::new([Err(busy), Ok(answer("late", tokens(1, 1)))]));
    let asking = {
        let model = Arc::clone(&model);
        tokio::spawn(async move {
            let mut follow = Beginnings(Vec::new());
            let request = request();
            let effect = ModelEffect { follow: &mut follow, ..ask(0, &model, &request) };
            gate.model(effect, said(0)).await.unwrap();
            follow.0
        })
    };
    house.clock.sleeper(Duration::from_secs(1)).await;
    house.clock.advance(Duration::from_secs(1));
    let began = asking.await.unwrap();
    assert_eq!(began.len(), 2);
    assert_eq!(began[1].since(began[0]), Duration::from_secs(1));
}
