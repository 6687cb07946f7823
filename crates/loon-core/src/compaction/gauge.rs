//! How full the context window is, and from where on it is compacted. Everything here is an
//! estimate, corrected by what the provider counted last.

use loon_api::event::ContextEstimated;
use loon_api::{ContextParts, ModelInfo};

use crate::limits::ContextLimits;

/// Bounds of a correction. What lies outside says more about the report than about the estimate.
const LEAST_SCALE: f64 = 0.5;
const MOST_SCALE: f64 = 3.0;

/// How full the window is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gauge {
    /// What the next request is made of; the parts add up to `tokens`.
    pub(crate) parts: ContextParts,
    /// Estimated tokens of the next request.
    pub(crate) tokens: u64,
    /// The model's window.
    pub(crate) capacity: Option<u64>,
    /// The user's own limit.
    pub(crate) own_limit: Option<u64>,
    /// Most tokens of a request: the least of what is known.
    pub(crate) limit: Option<u64>,
    /// From where on it is compacted.
    pub(crate) threshold: Option<u64>,
    /// What an estimate from bytes is multiplied with.
    pub(crate) scale: f64,
}

impl Gauge {
    /// Reads the gauge. `raw` is what the bytes say; `learned` the most that a request may have by
    /// what the provider said.
    pub(crate) fn read(
        raw: ContextParts,
        scale: f64,
        model: Option<&ModelInfo>,
        own: ContextLimits,
        learned: Option<u64>,
    ) -> Self {
        let parts = raw.map(|tokens| scaled(tokens, scale));
        let capacity = model.and_then(|model| model.context_tokens);
        let limit = [capacity, own.max_tokens, learned].into_iter().flatten().min();
        let longest_answer = model.and_then(|model| model.max_output_tokens);
        let threshold = threshold(limit, own.compact_at, longest_answer);
        Self {
            parts,
            tokens: parts.total(),
            capacity,
            own_limit: own.max_tokens,
            limit,
            threshold,
            scale,
        }
    }

    /// The next request would pass the threshold.
    pub(crate) fn is_over_threshold(&self) -> bool {
        self.threshold.is_some_and(|threshold| self.tokens > threshold)
    }

    /// The next request is too long for what is known.
    pub(crate) fn is_over_limit(&self) -> bool {
        self.limit.is_some_and(|limit| self.tokens > limit)
    }

    pub(crate) fn event(&self) -> ContextEstimated {
        ContextEstimated {
            tokens: self.tokens,
            capacity: self.capacity,
            limit: self.own_limit,
            threshold: self.threshold,
            parts: Some(self.parts),
        }
    }
}

/// An explicit threshold holds up to 80 % of the limit; without one there must be room for the
/// longest answer too.
fn threshold(
    limit: Option<u64>,
    explicit: Option<u64>,
    longest_answer: Option<u64>,
) -> Option<u64> {
    let Some(limit) = limit else { return explicit };
    let most = limit / 5 * 4 + limit % 5 * 4 / 5;
    let room_for_answer = limit.saturating_sub(longest_answer.unwrap_or(0)).max(limit / 2);
    Some(explicit.map_or(most.min(room_for_answer), |explicit| explicit.min(most)))
}

/// An estimate times a correction.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate of tokens, never negative and far below 2^52"
)]
pub(crate) fn scaled(tokens: u64, scale: f64) -> u64 {
    (tokens as f64 * scale).round() as u64
}

/// How far an estimate was off: what it must be multiplied with to be what was counted.
#[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
pub(crate) fn scale_of(estimated: u64, counted: u64) -> f64 {
    (counted as f64 / estimated.max(1) as f64).clamp(LEAST_SCALE, MOST_SCALE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(context_tokens: Option<u64>, max_output_tokens: Option<u64>) -> ModelInfo {
        ModelInfo { name: "lab/m".into(), context_tokens, max_output_tokens }
    }

    fn read(capacity: Option<u64>, longest: Option<u64>, own: ContextLimits) -> Gauge {
        let raw = ContextParts { system: 100, user: 900, ..ContextParts::default() };
        Gauge::read(raw, 1.0, Some(&model(capacity, longest)), own, None)
    }

    #[test]
    fn h010_an_explicit_threshold_is_capped_at_80_percent_of_the_capacity() {
        let at = |compact_at| {
            let own = ContextLimits { compact_at: Some(compact_at), max_tokens: None };
            read(Some(10_000), None, own).threshold
        };
        assert_eq!((at(5_000), at(8_000), at(9_999)), (Some(5_000), Some(8_000), Some(8_000)));
        let own = ContextLimits { compact_at: Some(9_999), max_tokens: Some(5_000) };
        assert_eq!(read(Some(10_000), None, own).threshold, Some(4_000));
    }

    #[test]
    fn without_an_explicit_threshold_the_longest_answer_has_room_too() {
        let none = ContextLimits::default();
        assert_eq!(read(Some(10_000), None, none).threshold, Some(8_000));
        assert_eq!(read(Some(10_000), Some(4_000), none).threshold, Some(6_000));
        assert_eq!(read(Some(10_000), Some(9_000), none).threshold, Some(5_000));
        assert_eq!(read(None, Some(9_000), none).threshold, None);
    }

    #[test]
    fn the_least_of_what_is_known_is_the_limit_and_the_users_own_wins() {
        let own = ContextLimits { compact_at: None, max_tokens: Some(999) };
        let gauge = read(Some(10_000), None, own);
        assert_eq!((gauge.capacity, gauge.limit), (Some(10_000), Some(999)));
        assert!(gauge.is_over_threshold() && gauge.is_over_limit());
        assert!(!read(None, None, ContextLimits::default()).is_over_limit());
        let raw = ContextParts { user: 1_000, ..ContextParts::default() };
        let gauge =
            Gauge::read(raw, 1.0, Some(&model(None, None)), ContextLimits::default(), Some(900));
        assert_eq!((gauge.limit, gauge.threshold), (Some(900), Some(720)));
    }

    #[test]
    fn a_count_of_the_provider_corrects_every_part() {
        let raw = ContextParts { system: 100, user: 900, ..ContextParts::default() };
        let scale = scale_of(1_000, 800);
        let gauge = Gauge::read(raw, scale, None, ContextLimits::default(), None);
        assert_eq!((gauge.parts.system, gauge.parts.user, gauge.tokens), (80, 720, 800));
        assert!((scale_of(1_000, 1) - LEAST_SCALE).abs() < 1e-9);
        assert!((scale_of(0, 1_000_000) - MOST_SCALE).abs() < 1e-9);
    }
}
