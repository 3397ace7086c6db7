//! Customers that compete for permits.

use std::panic::AssertUnwindSafe;

use futures::{
    FutureExt as _,
    future::{join_all, pending},
};

use super::{state::WAITING, *};

/// Starts to wait for a permit, without an end.
fn waiting(
    shares: &Shares,
    customer: CustomerId,
) -> std::pin::Pin<Box<impl Future<Output = Result<Share, Fault>> + use<>>> {
    let shares = shares.clone();
    let mut waiting = Box::pin(async move { shares.acquire(customer).await });
    assert!(waiting.as_mut().now_or_never().is_none(), "there is nothing to wait for");
    waiting
}

fn is_idle(shares: &Shares, total: usize) -> bool {
    let state = shares.state();
    state.free(0) == total && state.customers.is_empty()
}

#[tokio::test]
async fn one_customer_cannot_hold_all_permits() {
    let (shares, greedy, other) = (Shares::new(8), CustomerId::new(), CustomerId::new());
    let held: Vec<_> = (0..6).map(|_| shares.try_acquire(greedy).unwrap()).collect();
    assert!(matches!(shares.try_acquire(greedy), Err(Fault::Busy(_))));
    let _waiting = waiting(&shares, greedy);
    drop(shares.try_acquire(other).unwrap());
    drop(shares.acquire(other).await.unwrap());
    drop(held);
}

#[tokio::test]
async fn the_only_permit_is_used_by_all_in_turn() {
    let (shares, customer) = (Shares::new(1), CustomerId::new());
    let held = shares.try_acquire(customer).unwrap();
    let next = waiting(&shares, CustomerId::new());
    drop(held);
    drop(next.await.unwrap());
    assert!(is_idle(&shares, 1));
}

#[tokio::test]
async fn a_customer_with_many_callers_does_not_delay_one_with_few() {
    let (shares, greedy, other) = (Shares::new(4), CustomerId::new(), CustomerId::new());
    let mut held: Vec<_> = (0..3).map(|_| shares.try_acquire(greedy).unwrap()).collect();
    let reserved = shares.try_acquire(CustomerId::new()).unwrap();
    let mut crowd: Vec<_> = (0..200).map(|_| waiting(&shares, greedy)).collect();
    let latecomer = waiting(&shares, other);

    held.pop();
    drop(latecomer.now_or_never().expect("the next permit is the latecomer's").unwrap());
    let first = crowd.remove(0).now_or_never().expect("then it is the crowd's turn");
    drop((first, held, reserved));
    let done = join_all(crowd.into_iter().map(|waiting| waiting.map(drop))).await;
    assert_eq!(done.len(), 199);
    assert!(is_idle(&shares, 4));
}

#[tokio::test]
async fn customers_that_wait_are_served_in_turn() {
    let shares = Shares::new(1);
    let customers: Vec<_> = (0..3).map(|_| CustomerId::new()).collect();
    let mut held = Some(shares.try_acquire(CustomerId::new()).unwrap());
    let crowd = customers.iter().flat_map(|customer| [customer; 3]);
    let mut crowd: Vec<_> =
        crowd.map(|customer| (*customer, Some(waiting(&shares, *customer)))).collect();

    let mut served = Vec::new();
    while held.take().is_some() {
        for (customer, waiting) in &mut crowd {
            let Some(granted) = waiting.as_mut().and_then(futures::FutureExt::now_or_never) else {
                continue;
            };
            *waiting = None;
            served.push(*customer);
            held = Some(granted.unwrap());
            break;
        }
    }
    for round in served.chunks(3) {
        assert!(customers.iter().all(|customer| round.contains(customer)), "{served:?}");
    }
    assert_eq!(served.len(), 9);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_waits_too_long_is_refused_and_leaves_nothing_behind() {
    let (shares, customer) = (Shares::new(1), CustomerId::new());
    let held = shares.acquire(customer).await.unwrap();
    assert!(matches!(shares.acquire(customer).await, Err(Fault::Busy(_))));
    drop(held);
    assert!(is_idle(&shares, 1));
}

#[tokio::test]
async fn a_caller_that_has_gone_gives_way_to_the_next() {
    let (shares, customer) = (Shares::new(1), CustomerId::new());
    let held = shares.try_acquire(customer).unwrap();
    let gone = waiting(&shares, customer);
    let next = waiting(&shares, customer);
    drop(gone);
    drop(held);
    drop(next.now_or_never().unwrap().unwrap());
    assert!(is_idle(&shares, 1));
}

/// A way in which work ends that holds a permit, or waits for one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    Done,
    Failed,
    Panicked,
    /// Its caller drops it, for instance because the client has gone.
    Dropped,
    /// Its permit was charged to another customer in the meantime.
    Reassigned,
}

/// Acquires a permit, and ends once it may.
async fn work(shares: Shares, end: End, may_end: oneshot::Receiver<()>) -> Result<(), Fault> {
    let mut share = shares.acquire(CustomerId::new()).await?;
    may_end.await.map_err(Fault::internal)?;
    match end {
        End::Done => Ok(()),
        End::Failed => Err(Fault::internal("it failed")),
        End::Panicked => panic!("it panicked"),
        End::Dropped => pending().await,
        End::Reassigned => share.reassign(CustomerId::new()),
    }
}

#[tokio::test]
async fn the_next_customer_is_served_however_work_ends() {
    for end in [End::Done, End::Failed, End::Panicked, End::Dropped, End::Reassigned] {
        for begins_at_once in [true, false] {
            let shares = Shares::new(1);
            let held = (!begins_at_once).then(|| shares.try_acquire(CustomerId::new()).unwrap());
            let (may_end, allowed) = oneshot::channel();
            let mut work =
                Box::pin(AssertUnwindSafe(work(shares.clone(), end, allowed)).catch_unwind());
            assert!(work.as_mut().now_or_never().is_none());
            let next = waiting(&shares, CustomerId::new());

            may_end.send(()).unwrap();
            if end == End::Dropped {
                drop((work, held));
            } else {
                drop(held);
                let ended = work.await.map(|ended| ended.is_ok()).ok();
                let expected = match end {
                    End::Panicked => None,
                    end => Some(end != End::Failed),
                };
                assert_eq!(ended, expected, "{end:?}");
            }
            let served = next.now_or_never();
            drop(served.unwrap_or_else(|| panic!("the next one waits after {end:?}")).unwrap());
            assert!(is_idle(&shares, 1), "{end:?}, begun at once: {begins_at_once}");
        }
    }
}

#[tokio::test]
async fn the_callers_of_one_customer_that_wait_are_bounded() {
    let (shares, customer) = (Shares::new(1), CustomerId::new());
    let _held = shares.try_acquire(customer).unwrap();
    let crowd: Vec<_> = (0..WAITING).map(|_| waiting(&shares, customer)).collect();
    let refused = shares.acquire(customer).now_or_never();
    assert!(matches!(refused, Some(Err(Fault::Busy(_)))));
    let _other = waiting(&shares, CustomerId::new());
    drop(crowd);
}

#[tokio::test]
async fn a_caller_that_needs_many_permits_is_not_overtaken() {
    let (shares, large, small) = (Shares::new(8), CustomerId::new(), CustomerId::new());
    let held = shares.acquire_many(small, 4).await.unwrap();
    let mut waiting = Box::pin(shares.acquire_many(large, 5));
    assert!(waiting.as_mut().now_or_never().is_none());
    assert!(shares.try_acquire(small).is_err(), "four are free, and kept for the larger request");
    drop(held);
    drop(waiting.now_or_never().unwrap().unwrap());
    let all = shares.acquire_many(large, 100).await.unwrap();
    assert_eq!(all.count, 6, "as many as one customer may hold");
    drop(all);
    assert!(is_idle(&shares, 8));
}

#[tokio::test(start_paused = true)]
async fn a_caller_waits_no_longer_than_its_patience() {
    let (shares, customer) = (Shares::new(1), CustomerId::new());
    let held = shares.try_acquire(customer).unwrap();
    let began = tokio::time::Instant::now();
    let patience = Duration::from_millis(500);
    assert!(matches!(shares.acquire_within(customer, patience).await, Err(Fault::Busy(_))));
    assert!(began.elapsed() < patience * 2);
    drop(held);
    assert!(is_idle(&shares, 1));
}

#[tokio::test]
async fn permits_can_be_reassigned_to_a_customer_that_may_hold_them() {
    let (shares, first, second) = (Shares::new(4), CustomerId::new(), CustomerId::new());
    let mut held: Vec<_> = (0..3).map(|_| shares.try_acquire(first).unwrap()).collect();
    let next = waiting(&shares, first);
    held[0].reassign(second).unwrap();
    drop(next.now_or_never().expect("the first customer holds one less").unwrap());
    let more = shares.try_acquire(second).unwrap();
    held[1].reassign(second).unwrap();
    assert!(held[2].reassign(second).is_err(), "three quarters are the most");
    drop((held, more));
    assert!(is_idle(&shares, 4));
}
