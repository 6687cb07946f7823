//! The desk: one question for all, and how it closes.

use futures_util::future::{join, join3};

use super::*;

fn bound(limit: u64) -> ReachedBound {
    ReachedBound::MaxTokens { limit, used: limit }
}

/// Lets those who wait come to their wait.
async fn settle() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn all_who_wait_share_one_question_and_look_again_together() {
    let desk = BudgetDesk::default();
    let mut watch = SessionBudget::new(SharedBudget {
        tree: Tree::default(),
        desk: Arc::new(BudgetDesk::default()),
    });
    watch.questions = desk.question.subscribe();
    let (one, two) = (bound(1), bound(2));
    let raise = async {
        settle().await;
        watch.question_changed().await;
        let question = watch.questions.borrow_and_update().clone();
        assert_eq!(
            (question.number, question.stage),
            (1, Stage::Open { reached: one, waiting: 2 })
        );
        desk.look_again();
    };
    let (first, second, ()) = join3(desk.wait(&one), desk.wait(&two), raise).await;
    assert_eq!([first, second], [QuotaAnswer::LookAgain; 2]);
}

#[tokio::test]
async fn a_refusal_holds_until_it_is_forgotten() {
    let desk = BudgetDesk::default();
    desk.refuse();
    assert_eq!(desk.refused(), None, "nobody waits");
    let bound = bound(1);
    let refuse = async {
        settle().await;
        desk.refuse();
    };
    let (answer, ()) = join(desk.wait(&bound), refuse).await;
    assert_eq!((answer, desk.refused()), (QuotaAnswer::Refused, Some(bound)));
    assert_eq!(desk.wait(&bound).await, QuotaAnswer::Refused);
    desk.forget_refusal();
    assert_eq!(desk.refused(), None);
    let raise = async {
        settle().await;
        desk.look_again();
    };
    assert_eq!(join(desk.wait(&bound), raise).await.0, QuotaAnswer::LookAgain);
}

#[tokio::test]
async fn the_last_who_leaves_takes_the_question_back() {
    let desk = BudgetDesk::default();
    let bound = bound(1);
    {
        let (mut one, mut two) = (desk.wait(&bound), desk.wait(&bound));
        for wait in [&mut one, &mut two] {
            assert!(futures_util::poll!(wait).is_pending());
        }
        drop(one);
        assert!(matches!(desk.question.borrow().stage, Stage::Open { waiting: 1, .. }));
    }
    assert_eq!(desk.question.borrow().stage, Stage::Closed(Decision::Withdrawn));
}
