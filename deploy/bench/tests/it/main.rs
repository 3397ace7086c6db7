//! A guard against slow growth: the allocations of the main requests, which do not depend on the
//! speed of the machine.
//!
//! Assay runs in this process, whose allocator counts. The client sends one request after the other
//! and allocates nothing. NATS is stopped, so that the counts do not contain the pipeline of events,
//! which works in batches of varying size.

mod client;
mod installation;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use crate::{
    client::Request,
    installation::{Installation, Paths},
};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Part of a count by which it may differ: 5 %. Repeated runs differ by one percent.
const TOLERANCE: usize = 20;

/// Number of requests before the first count, until caches and buffers have their size.
const WARM_UP: usize = 50;

/// Number of counts, of which the smallest is taken: tasks in the background only add to them.
const COUNTS: usize = 7;

/// Number of requests in a count.
const REQUESTS: usize = 40;

/// A change of these figures belongs into the commit that causes it.
#[test]
fn the_main_requests_allocate_as_often_as_committed() {
    let assay = Installation::start();
    let Paths { case, cases, results } = &assay.paths;
    let committed = [
        (211, Request::get("read by id", case.clone())),
        (548, Request::get("list of 100", format!("{cases}?limit=100"))),
        (298, Request::post("create", cases.clone(), installation::new_case)),
        (395, Request::put("update", case.clone(), installation::change)),
        (614, Request::results("2 results with 20 steps", results.clone(), installation::results)),
    ];
    let mut client = assay.client();
    for (_, request) in &committed {
        client.send(request, WARM_UP);
    }
    // Series of one request are far apart, so that most of them have a quiet background.
    let mut counted = [usize::MAX; 5];
    for _ in 0..COUNTS {
        for (least, (_, request)) in counted.iter_mut().zip(&committed) {
            let before = allocations();
            client.send(request, REQUESTS);
            *least = (*least).min((allocations() - before) / REQUESTS);
        }
    }
    let mut differences = Vec::new();
    for (counted, (committed, Request { name, .. })) in counted.into_iter().zip(&committed) {
        println!("{name}: {counted} allocations, {committed} committed");
        if counted.abs_diff(*committed) > committed / TOLERANCE {
            differences.push(*name);
        }
    }
    assay.stop();
    assert!(
        differences.is_empty(),
        "commit the printed figures of {differences:?} if they are right"
    );
}

fn allocations() -> usize {
    let stats = ALLOCATOR.stats();
    stats.allocations + stats.reallocations
}
