//! JUnit reports of many tests.

use std::time::Instant;

use anyhow::Result;
use uuid::Uuid;

use super::measurement::Measurement;
use crate::{
    fixture::{create_set, upload},
    report::{Figure, Section, Unit},
};

pub(super) async fn measure(to: &mut Measurement<'_>) -> Result<()> {
    to.forget_peaks()?;
    for (count, tests, goal) in [("20,000", 20_000, "2 (1) s"), ("3,400", 3_400, "1 s")] {
        let client = to.system.client();
        let (set, suite) = (create_set(&client, "JUnit").await?, Uuid::now_v7().to_string());
        for (name, goal) in [("new tests", goal), ("known tests", "")] {
            let began = Instant::now();
            upload(&client, &set, &suite, tests).await?;
            let seconds = began.elapsed().as_secs_f64();
            let name = format!("JUnit, {count} {name}");
            let figure = Figure::new(Section::Batches, &name, Unit::Seconds).with_goal(goal);
            to.report.add(figure, to.system.shape, to.round, seconds);
            to.system.rest().await;
        }
    }
    to.peaks("batches")
}
