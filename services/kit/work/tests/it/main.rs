//! Attempts and dead letters in PostgreSQL.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
    time::Duration,
};

use assay_database::{Database, DatabaseConfig, PoolConfig};
use assay_proto::{CustomerId, Fault};
use assay_runtime::Runtime;
use assay_testkit::{TestDatabase, eventually};
use assay_work::{Attempt, DeadLetter, MOST_TAKEN, Patience, Queue, Waiting, Work, watch};
use futures::FutureExt as _;
use sqlx::{
    AssertSqlSafe, PgPool, SqlSafeStr,
    migrate::{Migration, MigrationType, Migrator},
};
use uuid::Uuid;

/// Cooking a meal, which fails three times at most.
const MEAL: Work = Work {
    kind: "meal",
    queue: Queue::Unfinished {
        patience: Patience {
            first: Duration::from_mins(1),
            longest: Duration::from_secs(90),
            failures: 3,
        },
        pending: "exists (select from meal where meal.id = w.id)",
        drop: "delete from meal where (customer_id, id) in (select * from unnest($1::uuid[], $2::uuid[]))",
    },
};

static WORKS: [Work; 1] = [MEAL];

struct Kitchen {
    db: PgPool,
    url: String,
    customer: CustomerId,
}

fn migrations() -> Migrator {
    let table = "create table meal (customer_id uuid, id uuid)".into_sql_str();
    let own = Migration::new(100, "meal".into(), MigrationType::Simple, table, false);
    Migrator::with_migrations(assay_work::TABLES.iter().cloned().chain([own]).collect())
}

impl Kitchen {
    async fn open() -> Self {
        let database = TestDatabase::create("work", &migrations()).await.unwrap();
        let db = PgPool::connect_with(database.options).await.unwrap();
        Self { db, url: database.url, customer: CustomerId::new() }
    }

    fn of_another_customer(&self) -> Self {
        Self { db: self.db.clone(), url: self.url.clone(), customer: CustomerId::new() }
    }

    async fn order(&self) -> Uuid {
        let id = Uuid::now_v7();
        let order = sqlx::query("insert into meal values ($1, $2)").bind(self.customer).bind(id);
        order.execute(&self.db).await.unwrap();
        id
    }

    async fn begin(&self, id: Uuid) -> Option<Attempt> {
        MEAL.begin(&self.db, self.customer, id).await.unwrap()
    }

    /// Returns the meals that are due.
    async fn due(&self) -> Vec<Uuid> {
        let due =
            format!("select id from meal where {}", MEAL.is_due("meal.customer_id", "meal.id"));
        sqlx::query_scalar(AssertSqlSafe(due)).fetch_all(&self.db).await.unwrap()
    }

    async fn letters(&self) -> Vec<DeadLetter> {
        let mut letters = Vec::new();
        MEAL.list(&self.db, None, |letter| letters.push(letter)).await.unwrap();
        letters
    }

    async fn pass_time(&self, seconds: f64) {
        let pass = "update unfinished_work
                    set next_attempt_at = next_attempt_at - make_interval(secs => $1)";
        sqlx::query(pass).bind(seconds).execute(&self.db).await.unwrap();
    }
}

#[tokio::test]
async fn work_without_an_end_is_given_up_and_done_after_an_operator_retries_it() {
    let kitchen = Kitchen::open().await;
    let id = kitchen.order().await;
    for number in 1..=MOST_TAKEN {
        // The program does not survive.
        assert_eq!(kitchen.begin(id).await.unwrap().number, number);
        assert_eq!(kitchen.due().await, [id]);
    }
    assert!(kitchen.begin(id).await.is_none());
    assert!(kitchen.begin(id).await.is_none(), "it is given up already");
    assert!(kitchen.due().await.is_empty());
    let [letter] = &kitchen.letters().await[..] else { panic!("one dead letter") };
    assert_eq!((letter.attempts, letter.customer_id), (MOST_TAKEN + 1, kitchen.customer));
    assert!(letter.reason.as_ref().unwrap().starts_with("no attempt came to an end"));

    let mut connection = kitchen.db.acquire().await.unwrap();
    let ids = [letter.id.clone()];
    assert_eq!(MEAL.retry(&mut connection, Some(&["other".to_owned()])).await.unwrap(), 0);
    assert_eq!(MEAL.retry(&mut connection, Some(&ids)).await.unwrap(), 1);
    assert_eq!(kitchen.due().await, [id]);
    let attempt = kitchen.begin(id).await.unwrap();
    assert_eq!(attempt.number, 1);
    attempt.done(&kitchen.db).await.unwrap();
    assert!(kitchen.letters().await.is_empty());
    assert_eq!(kitchen.begin(id).await.unwrap().number, 1, "as new work");
}

#[tokio::test]
async fn failed_work_waits_longer_each_time_and_is_given_up_after_the_last_failure() {
    let kitchen = Kitchen::open().await;
    let id = kitchen.order().await;
    for pause in [60.0, 90.0] {
        let attempt = kitchen.begin(id).await.unwrap();
        attempt.failed(&kitchen.db, &Fault::internal("burned\nblack")).await.unwrap();
        kitchen.pass_time(pause - 5.0).await;
        assert!(kitchen.due().await.is_empty());
        kitchen.pass_time(6.0).await;
        assert_eq!(kitchen.due().await, [id]);
    }
    // The clock was a month ahead.
    kitchen.pass_time(-30.0 * 24.0 * 3600.0).await;
    assert_eq!(kitchen.due().await, [id]);
    // The time in which the database is away does not count.
    for _ in 0..5 {
        let attempt = kitchen.begin(id).await.unwrap();
        attempt.failed(&kitchen.db, &Fault::Unavailable("the shop")).await.unwrap();
        kitchen.pass_time(100.0).await;
    }
    let attempt = kitchen.begin(id).await.unwrap();
    attempt.failed(&kitchen.db, &Fault::internal("burned\nblack")).await.unwrap();
    let [letter] = &kitchen.letters().await[..] else { panic!("one dead letter") };
    assert_eq!(letter.reason.as_deref(), Some("internal error: burned black"));
    assert!(kitchen.begin(id).await.is_none());
}

#[tokio::test]
async fn work_that_makes_progress_is_not_given_up() {
    let kitchen = Kitchen::open().await;
    let id = kitchen.order().await;
    for _ in 0..3 * MOST_TAKEN {
        let attempt = kitchen.begin(id).await.unwrap();
        attempt.progressed(&kitchen.db).await.unwrap();
    }
}

#[tokio::test]
async fn dropped_work_is_not_done_and_that_of_others_stays() {
    let kitchen = Kitchen::open().await;
    let ids = [kitchen.order().await, kitchen.order().await, kitchen.order().await];
    for id in &ids[..2] {
        kitchen.begin(*id).await.unwrap().give_up(&kitchen.db, "no eggs").await.unwrap();
    }
    let letters = kitchen.letters().await;
    assert_eq!(letters.len(), 2);
    let mut connection = kitchen.db.acquire().await.unwrap();
    let first = [letters[0].id.clone()];
    assert_eq!(MEAL.drop(&mut connection, Some(&first)).await.unwrap(), 1);
    assert_eq!(kitchen.letters().await.len(), 1);
    assert_eq!(kitchen.due().await, [ids[2]]);
    assert_eq!(MEAL.drop(&mut connection, None).await.unwrap(), 1);
    let left: i64 =
        sqlx::query_scalar("select count(*) from meal").fetch_one(&kitchen.db).await.unwrap();
    assert_eq!(left, 1);
}

#[tokio::test]
async fn an_attempt_that_another_one_has_followed_records_no_failure() {
    let kitchen = Kitchen::open().await;
    let id = kitchen.order().await;
    let frozen = kitchen.begin(id).await.unwrap();
    let running = kitchen.begin(id).await.unwrap();
    frozen.progressed(&kitchen.db).await.unwrap();
    frozen.failed(&kitchen.db, &Fault::internal("cold")).await.unwrap();
    frozen.give_up(&kitchen.db, "cold").await.unwrap();
    assert!(kitchen.letters().await.is_empty());
    assert_eq!(kitchen.due().await, [id], "the running attempt is not postponed");
    assert_eq!(kitchen.begin(id).await.unwrap().number, 3, "all attempts count");
    drop(running);
    // Its success is true all the same.
    frozen.done(&kitchen.db).await.unwrap();
    assert_eq!(kitchen.begin(id).await.unwrap().number, 1, "as new work");
}

#[tokio::test]
async fn work_is_done_in_turns_of_customers_and_a_failure_stops_no_other() {
    let kitchen = Kitchen::open().await;
    let other = kitchen.of_another_customer();
    let burnt = kitchen.order().await;
    let orders = [burnt, kitchen.order().await, other.order().await];
    let waiting = Waiting { table: "meal", id: "id", condition: "true" };
    let cooked = Arc::new(Mutex::new(Vec::new()));
    let due = |db: PgPool| async move { MEAL.due_of(&db, waiting).await };
    let cook = |db: PgPool, _: CustomerId, id: Uuid, attempt: Attempt| {
        cooked.lock().unwrap().push(id);
        async move {
            if id == burnt {
                return Err(Fault::internal("it was burnt"));
            }
            sqlx::query("delete from meal where id = $1").bind(id).execute(&db).await?;
            attempt.done(&db).await
        }
    };

    MEAL.do_all(&kitchen.db, due, cook).await.unwrap();

    let [first, second, of_other] = orders;
    assert_eq!(*cooked.lock().unwrap(), [first, of_other, second]);
    let due = kitchen.due().await;
    assert!(due.is_empty(), "the burnt one is attempted later: {due:?}");
    kitchen.pass_time(60.0).await;
    assert_eq!(kitchen.due().await, [burnt]);
}

#[tokio::test]
async fn work_that_panics_is_given_up_and_that_of_others_is_done() {
    let kitchen = Kitchen::open().await;
    let other = kitchen.of_another_customer();
    let explosive = kitchen.order().await;
    other.order().await;
    let waiting = Waiting { table: "meal", id: "id", condition: "true" };
    let due = |db: PgPool| async move { MEAL.due_of(&db, waiting).await };
    let cook = |db: PgPool, _: CustomerId, id: Uuid, attempt: Attempt| async move {
        assert_ne!(id, explosive, "the oven explodes");
        sqlx::query("delete from meal where id = $1").bind(id).execute(&db).await?;
        attempt.done(&db).await
    };

    // A program that panics ends, and is started again. PostgreSQL releases its lock a moment later.
    let is_done = async || {
        let round = AssertUnwindSafe(WORKS[0].do_all(&kitchen.db, due, cook)).catch_unwind();
        let _ = round.await;
        kitchen.due().await.is_empty().then_some(())
    };
    eventually("the work is done or given up", is_done).await;

    let left: Vec<Uuid> =
        sqlx::query_scalar("select id from meal").fetch_all(&kitchen.db).await.unwrap();
    assert_eq!(left, [explosive]);
    let [letter] = &kitchen.letters().await[..] else { panic!("one dead letter") };
    assert_eq!((letter.attempts, letter.customer_id), (MOST_TAKEN + 1, kitchen.customer));
}

#[tokio::test]
async fn attempts_of_work_that_was_deleted_with_its_customer_are_forgotten() {
    let kitchen = Kitchen::open().await;
    let other = kitchen.of_another_customer();
    for kitchen in [&kitchen, &other] {
        let _unfinished = kitchen.begin(kitchen.order().await).await.unwrap();
        let given_up = kitchen.begin(kitchen.order().await).await.unwrap();
        given_up.give_up(&kitchen.db, "no eggs").await.unwrap();
    }
    let delete = sqlx::query("delete from meal where customer_id = $1").bind(kitchen.customer);
    delete.execute(&kitchen.db).await.unwrap();

    let runtime = Runtime::new("kitchen");
    let config = DatabaseConfig {
        database_url: kitchen.url.as_str().into(),
        pool: PoolConfig { database_connections: 2 },
        database_migrate: true,
    };
    let database = Database::open(&runtime, &config, migrations()).unwrap();
    watch(&runtime, &database, &WORKS);
    let left = async || {
        let left = sqlx::query_scalar("select customer_id from unfinished_work");
        let left: Vec<CustomerId> = left.fetch_all(&kitchen.db).await.unwrap();
        (!left.contains(&kitchen.customer)).then_some(left)
    };
    let left = eventually("its attempts are forgotten", left).await;
    assert_eq!(left, [other.customer; 2]);
    runtime.stopping().cancel();
}
