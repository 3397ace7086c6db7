//! Start and stop of the programs.

use anyhow::Result;

use super::measurement::Measurement;
use crate::report::{Figure, Section, Unit};

pub(super) async fn measure(to: &mut Measurement<'_>) -> Result<()> {
    let (shape, round) = (to.system.shape, to.round);
    let stop = to.system.stop_programs().await?;
    let start = to.system.start().await?;
    let figure = |name| Figure::new(Section::Batches, name, Unit::Seconds);
    let goal = "0.5 s";
    to.report.add(figure("start to ready").with_goal(goal), shape, round, start);
    to.report.add(figure("stop"), shape, round, stop);
    to.system.rest().await;
    Ok(())
}
