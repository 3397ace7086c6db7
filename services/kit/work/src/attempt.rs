//! Attempts that are counted in the table `unfinished_work`.

use std::{iter::successors, time::Duration};

use assay_database::begin;
use assay_proto::{CustomerId, Fault};
use sqlx::{PgExecutor, PgPool, Postgres, postgres::PgArguments, query::Query};
use uuid::Uuid;

use crate::{MOST_TAKEN, NO_END, Patience, Queue, Work};

/// Maximum number of characters of a stored reason.
const LONGEST_REASON: usize = 1000;

/// An attempt to do work, which has been counted.
#[derive(Clone, Debug)]
#[must_use]
pub struct Attempt {
    kind: &'static str,
    patience: Patience,
    customer: CustomerId,
    id: Uuid,
    /// Number of attempts, including this one.
    pub number: i32,
    /// Time since the first attempt.
    pub age: Duration,
    failures: i32,
    /// Identifies the attempt. A later attempt has another token, so that this one records nothing any
    /// more.
    token: Uuid,
}

impl Work {
    /// Returns the condition that work may be attempted now, for a query of what is to be done. The
    /// arguments are columns with the customer and the id of the work. No pause is as long as a day: a later time
    /// is of a clock that was ahead.
    pub fn is_due(&self, customer: &str, id: &str) -> String {
        format!(
            "not exists (
                 select from unfinished_work w
                 where w.kind = '{}' and w.customer_id = {customer} and w.id = {id}
                   and (w.given_up_at is not null
                        or w.next_attempt_at > now() and w.next_attempt_at < now() + interval '1 day')
             )",
            self.kind
        )
    }

    /// Counts an attempt before the work begins. Returns `None` if the work is a dead letter, or becomes
    /// one because no attempt came to an end.
    ///
    /// Only one program may attempt the work at a time, or several count as attempts without an end.
    pub async fn begin(
        &self,
        db: &PgPool,
        customer: CustomerId,
        id: impl Into<Uuid>,
    ) -> Result<Option<Attempt>, Fault> {
        let Queue::Unfinished { patience, .. } = self.queue else {
            return Err(Fault::internal(format!("{} has a queue of its own", self.kind)));
        };
        let id = id.into();
        let mut tx = begin(db).await?;
        // A program that ends does not end PostgreSQL, which writes the count a moment later.
        sqlx::query("set local synchronous_commit = off").execute(&mut *tx).await?;
        let count = sqlx::query_as(
            "insert into unfinished_work as w (kind, customer_id, id, taken, token)
             values ($1, $2, $3, 1, gen_random_uuid())
             on conflict on constraint unfinished_work_pkey do update
             set taken = w.taken + (w.given_up_at is null)::int, next_attempt_at = null,
                 token = excluded.token
             returning taken, failures, given_up_at is not null,
                 extract(epoch from now() - begun_at)::float8, token",
        );
        let (begun, failures, is_given_up, age, token): (i32, i32, bool, f64, Uuid) =
            count.bind(self.kind).bind(customer).bind(id).fetch_one(&mut *tx).await?;
        tx.commit().await?;
        if is_given_up {
            return Ok(None);
        }
        let (kind, number) = (self.kind, failures + begun);
        let age = Duration::try_from_secs_f64(age).unwrap_or_default();
        let attempt = Attempt { kind, patience, customer, id, number, age, failures, token };
        if begun > MOST_TAKEN {
            attempt.give_up(db, NO_END).await?;
            return Ok(None);
        }
        Ok(Some(attempt))
    }
}

impl Attempt {
    /// Notes that a part of the work is done, and will not be repeated. The attempts before have come
    /// to an end with it.
    pub async fn progressed(&self, db: impl PgExecutor<'_>) -> Result<(), Fault> {
        let progressed = "update unfinished_work set taken = 1
                          where kind = $1 and customer_id = $2 and id = $3 and token = $4
                            and taken > 1";
        self.bind(sqlx::query(progressed)).execute(db).await?;
        Ok(())
    }

    /// Notes that the work is done, or need not be done any more, in the transaction of its effect. This
    /// holds although another attempt may have begun since.
    pub async fn done(&self, db: impl PgExecutor<'_>) -> Result<(), Fault> {
        let done = "delete from unfinished_work where kind = $1 and customer_id = $2 and id = $3";
        let done = sqlx::query(done).bind(self.kind).bind(self.customer).bind(self.id);
        done.execute(db).await?;
        Ok(())
    }

    /// Postpones the work after a failure, or gives it up after the last one. The time in which a
    /// database or another service is away does not count.
    pub async fn failed(&self, db: &PgPool, fault: &Fault) -> Result<(), Fault> {
        let is_blocked = matches!(fault, Fault::Unavailable(_) | Fault::Busy(_));
        self.count_failure(db, i32::from(!is_blocked), &causes(fault)).await
    }

    /// Postpones the work after a failure with this reason, or gives it up after the last one.
    pub async fn failed_because(&self, db: &PgPool, reason: &str) -> Result<(), Fault> {
        self.count_failure(db, 1, reason).await
    }

    async fn count_failure(&self, db: &PgPool, count: i32, reason: &str) -> Result<(), Fault> {
        let failures = self.failures.saturating_add(count);
        if failures >= self.patience.failures {
            return self.give_up(db, reason).await;
        }
        let pause = self.patience.pause(failures);
        let postpone = sqlx::query(
            "update unfinished_work
             set taken = 0, failures = $5, reason = $6,
                 next_attempt_at = now() + make_interval(secs => $7)
             where kind = $1 and customer_id = $2 and id = $3 and token = $4",
        );
        let postpone = self.bind(postpone).bind(failures);
        let postpone = postpone.bind(shortened(reason)).bind(pause.as_secs_f64());
        if postpone.execute(db).await?.rows_affected() > 0 {
            let Self { kind, customer, id, .. } = self;
            tracing::warn!(work.kind = *kind, %customer, work.id = %id, reason, ?pause,
                "work in the background failed; trying again");
        }
        Ok(())
    }

    /// Gives the work up. It becomes a dead letter.
    pub async fn give_up(&self, db: impl PgExecutor<'_>, reason: &str) -> Result<(), Fault> {
        let give_up = sqlx::query(
            "update unfinished_work
             set given_up_at = now(), failures = $5, taken = 0, reason = $6, next_attempt_at = null
             where kind = $1 and customer_id = $2 and id = $3 and token = $4",
        );
        let give_up = self.bind(give_up).bind(self.number).bind(shortened(reason));
        if give_up.execute(db).await?.rows_affected() > 0 {
            announce(self.kind, &self.id.to_string(), reason);
        }
        Ok(())
    }

    /// Binds what identifies the attempt.
    fn bind<'q>(
        &self,
        query: Query<'q, Postgres, PgArguments>,
    ) -> Query<'q, Postgres, PgArguments> {
        query.bind(self.kind).bind(self.customer).bind(self.id).bind(self.token)
    }
}

/// Returns the message of a fault with all its causes.
pub fn causes(fault: &Fault) -> String {
    let chain = successors(Some(fault as &dyn std::error::Error), |error| error.source());
    chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Logs that work was given up.
pub fn announce(kind: &str, id: &str, reason: &str) {
    tracing::warn!(
        work.kind = kind,
        work.id = id,
        reason,
        "gave up work in the background; see `dead-letters list`"
    );
}

/// Shortens a reason to what is stored, without control characters.
pub fn shortened(reason: &str) -> String {
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    reason.chars().take(LONGEST_REASON).map(printable).collect()
}
