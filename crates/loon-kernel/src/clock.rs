//! The system's clock, and one that tests move by hand.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use loon_api::{At, BoxFuture, Clock};
use tokio::sync::Notify;

/// A span of time as records carry it.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The clock of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> At {
        At::from_unix_ms(jiff::Timestamp::now().as_millisecond())
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
    next_id: u64,
    sleepers: BTreeMap<u64, (At, Waker)>,
}

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn new(now: At) -> Self {
        let state = State { now, next_id: 0, sleepers: BTreeMap::new() };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), changed: Notify::new() }) }
    }

    /// Moves the clock forward and wakes whoever is due.
    pub fn advance(&self, duration: Duration) {
        let due: Vec<Waker> = {
            let mut state = self.shared.lock();
            state.now = state.now.plus(duration);
            let now = state.now;
            state.sleepers.values().filter(|(at, _)| *at <= now).map(|(_, w)| w.clone()).collect()
        };
        for waker in due {
            waker.wake();
        }
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
        let due = state.now.plus(duration);
        state.sleepers.values().any(|(at, _)| *at == due)
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

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let mut state = self.shared.lock();
        let id = state.next_id;
        state.next_id += 1;
        Box::pin(ManualSleep {
            shared: Arc::clone(&self.shared),
            id,
            due: state.now.plus(duration),
        })
    }
}

struct ManualSleep {
    shared: Arc<Shared>,
    id: u64,
    due: At,
}

impl Future for ManualSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.shared.lock();
        if state.now >= self.due {
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
