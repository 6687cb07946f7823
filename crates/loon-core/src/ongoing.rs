//! Awaiting something beside work that goes on: the work may hold what the other waits for, such as its
//! turn to tell the front end.

use std::pin::{Pin, pin};
use std::task::Poll;

/// Work under way in this task.
pub(crate) struct Ongoing<'a, F: Future> {
    work: Pin<&'a mut F>,
    /// Its result, if it came while something else was awaited.
    done: Option<F::Output>,
}

impl<'a, F: Future> Ongoing<'a, F> {
    /// Work that has not ended.
    pub(crate) fn new(work: Pin<&'a mut F>) -> Self {
        Self { work, done: None }
    }

    /// Awaits `other` while the work goes on.
    pub(crate) async fn beside<R>(&mut self, other: impl Future<Output = R>) -> R {
        let mut other = pin!(other);
        std::future::poll_fn(|cx| {
            if self.done.is_none()
                && let Poll::Ready(done) = self.work.as_mut().poll(cx)
            {
                self.done = Some(done);
            }
            other.as_mut().poll(cx)
        })
        .await
    }

    /// Awaits its end. Must not be awaited again after that.
    pub(crate) async fn end(&mut self) -> F::Output {
        match self.done.take() {
            Some(done) => done,
            None => self.work.as_mut().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn work_lets_go_of_what_is_waited_for_beside_it() {
        let lock = Mutex::new(());
        let mut work = pin!(async {
            let held = lock.lock().await;
            tokio::task::yield_now().await;
            drop(held);
            7
        });
        let mut work = Ongoing::new(work.as_mut());
        // It takes the lock, and then the other waits for it.
        assert!(futures_util::FutureExt::now_or_never(work.end()).is_none());
        work.beside(async { drop(lock.lock().await) }).await;
        assert_eq!(work.end().await, 7);
    }

    #[tokio::test]
    async fn a_result_that_came_meanwhile_is_kept() {
        let mut work = pin!(async { 7 });
        let mut work = Ongoing::new(work.as_mut());
        work.beside(tokio::task::yield_now()).await;
        assert_eq!(work.done, Some(7));
        assert_eq!(work.end().await, 7);
    }
}
