//! A latch: the server stops at it until the test lets it go on. It takes the place of sleeping.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::PATIENCE;

/// A point that a scripted answer reaches and waits at. Clones are the same latch.
#[derive(Clone, Debug, Default)]
pub struct Latch {
    shared: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Debug, Default)]
struct State {
    reached: usize,
    released: usize,
}

impl Latch {
    /// A closed latch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets one waiter pass, now or when it arrives.
    pub fn release(&self) {
        let (state, changed) = &*self.shared;
        state.lock().unwrap().released += 1;
        changed.notify_all();
    }

    /// Blocks until a waiter stands at the latch for the `times`-th time (from 1).
    pub fn wait_reached(&self, times: usize) {
        let (state, changed) = &*self.shared;
        let (state, timeout) = changed
            .wait_timeout_while(state.lock().unwrap(), PATIENCE, |state| state.reached < times)
            .unwrap();
        assert!(!timeout.timed_out(), "nobody came to the latch; {state:?}");
    }

    /// Stands at the latch until it is released; false if `gone` said so first.
    pub(crate) fn pass(&self, mut gone: impl FnMut() -> bool) -> bool {
        const LOOK: Duration = Duration::from_millis(20);
        let (state, changed) = &*self.shared;
        let mut state = state.lock().unwrap();
        state.reached += 1;
        changed.notify_all();
        let begun = Instant::now();
        loop {
            if state.released > 0 {
                state.released -= 1;
                return true;
            }
            if gone() || begun.elapsed() > PATIENCE * 2 {
                return false;
            }
            state = changed.wait_timeout(state, LOOK).unwrap().0;
        }
    }
}
