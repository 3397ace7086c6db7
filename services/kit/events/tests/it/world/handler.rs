//! A handler that stores numbers, and fails when a test wants it to.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use assay_events::{Handler, Received};
use assay_proto::Fault;
use serde_json::Value;
use sqlx::PgTransaction;

/// Makes the handler fail for certain numbers.
#[derive(Clone, Default)]
pub(crate) struct Failures {
    set: Arc<Mutex<HashSet<(i32, &'static str)>>>,
    deaths: Arc<AtomicUsize>,
}

impl Failures {
    pub(crate) fn set(&self, number: i32, kind: &'static str) {
        self.set.lock().unwrap().insert((number, kind));
    }

    pub(crate) fn clear(&self) {
        self.set.lock().unwrap().clear();
    }

    /// Returns how often the program would not have survived an event.
    pub(crate) fn deaths(&self) -> usize {
        self.deaths.load(Ordering::Relaxed)
    }

    fn has(&self, number: i32, kind: &'static str) -> bool {
        self.set.lock().unwrap().contains(&(number, kind))
    }
}

/// Stores the numbers that events carry.
pub(super) struct StoreNumbers {
    pub(super) failures: Failures,
    pub(super) gathers: bool,
}

fn number(event: &Received) -> Result<i32, Fault> {
    let data: Value = event.data()?;
    let number = data.as_i64().or_else(|| data[0].as_i64()).unwrap();
    Ok(i32::try_from(number).unwrap())
}

impl Handler for StoreNumbers {
    async fn handle(&self, tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
        let number = number(event)?;
        let pass = sqlx::query("select from barrier where number = $1 for share");
        pass.bind(number).execute(&mut **tx).await?;
        if self.failures.has(number, "fatal") {
            self.failures.deaths.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<()>().await;
        }
        if self.failures.has(number, "endless") {
            std::future::pending::<()>().await;
        }
        let insert = sqlx::query("insert into effect (number) values ($1)");
        insert.bind(number).execute(&mut **tx).await?;
        assert!(!self.failures.has(number, "panic"), "a panic of the handler");
        if self.failures.has(number, "away") {
            return Err(Fault::Unavailable("something"));
        }
        if self.failures.has(number, "poison") {
            return Err(Fault::internal("not\r\ndigestible"));
        }
        Ok(())
    }

    async fn handle_all(
        &self,
        tx: &mut PgTransaction<'_>,
        events: &[&Received],
    ) -> Result<bool, Fault> {
        if !self.gathers {
            return Ok(false);
        }
        let numbers: Result<Vec<_>, Fault> = events.iter().map(|event| number(event)).collect();
        let numbers = numbers?;
        let insert = sqlx::query("insert into effect (number) select unnest($1::int[])");
        insert.bind(&numbers).execute(&mut **tx).await?;
        if numbers.iter().any(|number| self.failures.has(*number, "poison")) {
            return Err(Fault::internal("some event is not digestible"));
        }
        Ok(true)
    }
}
