//! How each row is measured.

mod events;
mod files;
mod growth;
mod judgement;
mod junit;
mod leases;
mod measurement;
mod pipeline;
mod requests;
mod restart;
mod results;
mod stream;
mod whole;

use anyhow::Result;

pub(crate) use self::measurement::Measurement;
use crate::row::Row;

impl Row {
    pub(crate) async fn measure(self, to: &mut Measurement<'_>) -> Result<()> {
        match self {
            Self::Read => requests::read(to).await,
            Self::List => requests::list(to).await,
            Self::Create => requests::create(to).await,
            Self::Update => requests::update(to).await,
            Self::Login => requests::login(to).await,
            Self::Whole => whole::measure(to).await,
            Self::Junit => junit::measure(to).await,
            Self::Results => results::measure(to).await,
            Self::Files => files::measure(to).await,
            Self::Leases => leases::measure(to).await,
            Self::Stream => stream::measure(to).await,
            Self::Events => events::measure(to).await,
            Self::Pipeline => pipeline::measure(to).await,
            Self::Restart => restart::measure(to).await,
            Self::Judgement => judgement::measure(to).await,
            Self::Growth => growth::measure(to).await,
            Self::Judgements => judgement::measure_grown(to).await,
        }
    }
}
