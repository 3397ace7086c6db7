//! Callers whose jobs are gathered.

use assay_proto::CustomerId;
use futures::{FutureExt as _, future::join_all};
use tokio::{
    sync::{mpsc, oneshot},
    task::yield_now,
};
use tonic::Code;

use super::*;

type Batch = (CustomerId, Vec<u32>, oneshot::Sender<Outcome<u32, Fault>>);

/// A gather whose batches are carried out by the test.
fn manual(shares: &Shares) -> (Gather<CustomerId, u32, u32>, mpsc::UnboundedReceiver<Batch>) {
    let (sender, batches) = mpsc::unbounded_channel();
    let gather = Gather::new(shares, move |customer, jobs| {
        let (done, outcome) = oneshot::channel();
        sender.send((customer, jobs, done)).unwrap();
        async { outcome.await.expect("an outcome") }
    });
    (gather, batches)
}

/// Returns each job plus one.
fn complete((_, jobs, done): Batch) {
    done.send(Ok(jobs.into_iter().map(|job| Ok(job + 1)).collect())).unwrap();
}

#[tokio::test]
async fn jobs_that_arrive_during_a_batch_form_the_next_one() {
    let (gather, mut batches) = manual(&Shares::new(4));
    let customer = CustomerId::new();
    let callers = (0..100).map(|job| gather.run(customer, job));
    let test = async {
        let mut sizes = Vec::new();
        while sizes.iter().sum::<usize>() < 100 {
            let batch = batches.recv().await.unwrap();
            assert!(batches.try_recv().is_err(), "one batch at a time");
            sizes.push(batch.1.len());
            complete(batch);
        }
        assert_eq!(sizes, [LARGEST_BATCH, 100 - LARGEST_BATCH]);
    };
    let (outcomes, ()) = tokio::join!(join_all(callers), test);
    let outcomes: Result<Vec<_>, _> = outcomes.into_iter().collect();
    assert_eq!(outcomes.unwrap(), (1..=100).collect::<Vec<_>>());
    while !gather.waiting().is_empty() {
        yield_now().await;
    }
}

#[tokio::test]
async fn jobs_that_arrive_at_once_form_one_batch() {
    let (gather, mut batches) = manual(&Shares::new(4));
    let customer = CustomerId::new();
    let test = async {
        let (_, jobs, done) = batches.recv().await.unwrap();
        assert_eq!(jobs, [1, 3, 4]);
        done.send(Ok(vec![Ok(2), Err(Fault::NotFound("test case")), Ok(5)])).unwrap();
    };
    let jobs = [Ok(1), Err(Fault::invalid("Number", "must be odd")), Ok(3), Ok(4)];
    let (outcomes, ()) = tokio::join!(gather.run_all(customer, jobs), test);
    let outcomes = outcomes.unwrap().into_iter().map(|outcome| outcome.map_err(|s| s.code()));
    let expected = [Ok(2), Err(Code::InvalidArgument), Err(Code::NotFound), Ok(5)];
    assert_eq!(outcomes.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn each_job_fails_by_its_own_fault_or_by_that_of_its_batch() {
    let (gather, mut batches) = manual(&Shares::new(4));
    let customer = CustomerId::new();
    let both = async || tokio::join!(gather.run(customer, 1), gather.run(customer, 2));
    let test = async {
        let (_, _, done) = batches.recv().await.unwrap();
        done.send(Ok(vec![Ok(1), Err(Fault::NotFound("test case"))])).unwrap();
    };
    let ((first, second), ()) = tokio::join!(both(), test);
    assert_eq!((first.unwrap(), second.unwrap_err().code()), (1, Code::NotFound));

    let test = async {
        let (_, _, done) = batches.recv().await.unwrap();
        done.send(Err(Fault::Unavailable("the database").into())).unwrap();
    };
    let ((first, second), ()) = tokio::join!(both(), test);
    for outcome in [first, second] {
        assert_eq!(outcome.unwrap_err().code(), Code::Unavailable);
    }
}

#[tokio::test]
async fn a_batch_holds_one_share_of_its_customer() {
    let shares = Shares::new(4);
    let (gather, mut batches) = manual(&shares);
    let [first, second] = [CustomerId::new(), CustomerId::new()];
    let test = async {
        let of_first = batches.recv().await.unwrap();
        // The batch of another customer does not wait for it.
        let of_second = batches.recv().await.unwrap();
        assert_eq!((of_first.0, of_second.0), (first, second));
        let free: Vec<_> =
            std::iter::from_fn(|| shares.try_acquire(CustomerId::new()).ok()).collect();
        assert_eq!(free.len(), 2);
        complete(of_first);
        complete(of_second);
    };
    let (one, other, ()) = tokio::join!(gather.run(first, 1), gather.run(second, 2), test);
    assert_eq!((one.unwrap(), other.unwrap()), (2, 3));
}

#[tokio::test]
async fn a_caller_that_has_gone_is_left_out() {
    let (gather, mut batches) = manual(&Shares::new(4));
    let customer = CustomerId::new();
    let mut first = Box::pin(gather.run(customer, 1));
    assert!(first.as_mut().now_or_never().is_none());
    let begun = batches.recv().await.unwrap();
    let mut gone = Box::pin(gather.run(customer, 2));
    assert!(gone.as_mut().now_or_never().is_none());
    let mut last = Box::pin(gather.run(customer, 3));
    assert!(last.as_mut().now_or_never().is_none());
    drop(gone);
    complete(begun);
    let next = batches.recv().await.unwrap();
    assert_eq!(next.1, [3]);
    complete(next);
    assert_eq!((first.await.unwrap(), last.await.unwrap()), (2, 4));
}

#[tokio::test]
async fn after_a_panic_callers_fail_and_the_next_job_is_carried_out() {
    let (gather, mut batches) = manual(&Shares::new(4));
    let customer = CustomerId::new();
    let fail = async {
        let (_, _, done) = batches.recv().await.unwrap();
        drop(done);
    };
    let (failed, ()) = tokio::join!(gather.run(customer, 1), fail);
    assert_eq!(failed.unwrap_err().code(), Code::Internal);
    let test = async { complete(batches.recv().await.unwrap()) };
    let (done, ()) = tokio::join!(gather.run(customer, 2), test);
    assert_eq!(done.unwrap(), 3);
}
