//! The system's clock, and one that tests move by hand.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use loon_api::{At, BoxFuture, Clock};
use tokio::sync::Notify;

/// A span of time as records carry it.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A duration for people: whole seconds, or milliseconds below one.
pub(crate) fn in_words(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{} s", duration.as_secs_f64())
    }
}

/// What [`SystemClock`] counts from.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The clock of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> At {
        At::from_unix_ms(jiff::Timestamp::now().as_millisecond())
    }

    fn steady(&self) -> Duration {
        START.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// A clock that stands still until it is moved. Clones show the same time.
#[derive(Clone)]
pub struct ManualClock {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    now: At,
    steady: Duration,
    next_id: u64,
    sleepers: BTreeMap<u64, (Duration, Waker)>,
}

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn new(now: At) -> Self {
        let state = State { now, steady: Duration::ZERO, next_id: 0, sleepers: BTreeMap::new() };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), changed: Notify::new() }) }
    }

    /// Moves the clock forward and wakes whoever is due.
    pub fn advance(&self, duration: Duration) {
        let due: Vec<Waker> = {
            let mut state = self.shared.lock();
            state.now = state.now.plus(duration);
            state.steady += duration;
            let steady = state.steady;
            let due = state.sleepers.values().filter(|(due, _)| *due <= steady);
            due.map(|(_, waker)| waker.clone()).collect()
        };
        for waker in due {
            waker.wake();
        }
    }

    /// Sets the time of day, as a person or a time server does. No time passes, and nobody wakes.
    pub fn set(&self, now: At) {
        self.shared.lock().now = now;
    }

    /// Completes once somebody sleeps until exactly `duration` from now.
    pub async fn sleeper(&self, duration: Duration) {
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that a sleeper in between is not missed.
            changed.as_mut().enable();
            if self.is_sleeper(duration) {
                return;
            }
            changed.await;
        }
    }

    /// True if somebody sleeps until exactly `duration` from now.
    pub fn is_sleeper(&self, duration: Duration) -> bool {
        let state = self.shared.lock();
        let wanted = state.steady + duration;
        state.sleepers.values().any(|(due, _)| *due == wanted)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> At {
        self.shared.lock().now
    }

    fn steady(&self) -> Duration {
        self.shared.lock().steady
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let mut state = self.shared.lock();
        let id = state.next_id;
        state.next_id += 1;
        Box::pin(ManualSleep {
            shared: Arc::clone(&self.shared),
            id,
            due: state.steady.saturating_add(duration),
        })
    }
}

struct ManualSleep {
    shared: Arc<Shared>,
    id: u64,
    due: Duration,
}

impl Future for ManualSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.shared.lock();
        if state.steady >= self.due {
            state.sleepers.remove(&self.id);
            return Poll::Ready(());
        }
        state.sleepers.insert(self.id, (self.due, cx.waker().clone()));
        drop(state);
        self.shared.changed.notify_waiters();
        Poll::Pending
    }
}

impl Drop for ManualSleep {
    fn drop(&mut self) {
        self.shared.lock().sleepers.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sleeper_wakes_when_its_time_has_come_and_not_before() {
        let clock = ManualClock::new(At::from_unix_ms(1_000));
        let sleeping = tokio::spawn(clock.sleep(Duration::from_millis(20)));
        clock.sleeper(Duration::from_millis(20)).await;
        clock.advance(Duration::from_millis(19));
        assert!(clock.is_sleeper(Duration::from_millis(1)));
        clock.advance(Duration::from_millis(1));
        sleeping.await.unwrap();
        assert_eq!(clock.now(), At::from_unix_ms(1_020));
        assert!(!clock.is_sleeper(Duration::ZERO));
    }
}
