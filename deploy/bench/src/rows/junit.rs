//! A JUnit report of 20,000 tests.

use std::time::Instant;

use anyhow::Result;
use uuid::Uuid;

use super::Measurement;
use crate::{
    fixture::{create_set, upload},
    report::{Figure, Section, Unit},
};

const TESTS: usize = 20_000;

pub(super) async fn measure(to: &mut Measurement<'_>) -> Result<()> {
    let client = to.system.client();
    let (set, suite) = (create_set(&client, "JUnit").await?, Uuid::now_v7().to_string());
    for (name, goal) in [("20,000 new tests", "2 (1) s"), ("the same again", "")] {
        let began = Instant::now();
        upload(&client, &set, &suite, TESTS).await?;
        let seconds = began.elapsed().as_secs_f64();
        let figure = Figure::new(Section::Batches, &format!("JUnit, {name}"), Unit::Seconds);
        to.report.add(figure.with_goal(goal), to.system.shape, to.round, seconds);
        to.system.rest().await;
    }
    Ok(())
}
