//! Databases whose programs lose the connection.

use std::{collections::HashSet, future::pending, time::Duration};

use anyhow::{Context, Result};
use assay_database::{Database, DatabaseConfig, PoolConfig, begin, command_options, exclusively};
use assay_proto::Fault;
use assay_runtime::Runtime;
use assay_testkit::{TestDatabase, Wire, eventually};
use sqlx::{PgPool, migrate::Migrator};
use tokio::{sync::Semaphore, time::timeout};

const LOCK: &str = "select pg_advisory_xact_lock(1)";

const SESSION: &str = "select pg_backend_pid()";

fn open(runtime: &Runtime, url: &str) -> Result<PgPool> {
    Ok(Database::open(runtime, &config(url), Migrator::DEFAULT)?.pool().clone())
}

fn config(url: &str) -> DatabaseConfig {
    DatabaseConfig { database_url: url.into(), pool: pool(2), database_migrate: true }
}

fn pool(database_connections: u32) -> PoolConfig {
    PoolConfig { database_connections }
}

/// A program that is stopped (SIGSTOP) or has lost its network keeps its connection open.
#[tokio::test]
async fn locks_of_a_program_that_freezes_within_a_transaction_are_released() -> Result<()> {
    let database = TestDatabase::empty().await?;
    let (wire, url) = Wire::to_postgres(&database.url).await?;
    let (silent, other) = (Runtime::new("silent"), Runtime::new("other"));
    let mut tx = begin(&open(&silent, &url)?).await?;
    sqlx::query(LOCK).execute(&mut *tx).await?;
    let wait = |limit| {
        timeout(limit, async {
            let mut tx = begin(&open(&other, &database.url)?).await?;
            sqlx::query(LOCK).execute(&mut *tx).await?;
            anyhow::Ok(())
        })
    };
    assert!(wait(Duration::from_millis(300)).await.is_err(), "the lock is held");

    wire.freeze();
    wait(Duration::from_secs(9)).await??;
    Ok(())
}

#[tokio::test]
async fn commands_may_read_for_long_but_not_freeze_within_a_transaction() -> Result<()> {
    let database = TestDatabase::empty().await?;
    let db = PgPool::connect_with(command_options(&database.url.clone().into())?).await?;
    for (setting, limit) in [
        ("idle_in_transaction_session_timeout", "2min"),
        ("statement_timeout", "0"),
        ("jit", "off"),
    ] {
        let shown = sqlx::query_scalar("select current_setting($1)").bind(setting);
        let shown: String = shown.fetch_one(&db).await?;
        assert_eq!(shown, limit, "{setting}");
    }
    Ok(())
}

#[tokio::test]
async fn a_lock_that_others_hold_does_not_look_like_a_database_that_is_gone() -> Result<()> {
    let database = TestDatabase::empty().await?;
    let db = PgPool::connect(&database.url).await?;
    let (mut holder, mut waiting) = (begin(&db).await?, begin(&db).await?);
    sqlx::query(LOCK).execute(&mut *holder).await?;
    sqlx::query("set local lock_timeout = '20ms'").execute(&mut *waiting).await?;
    let late = Fault::from(sqlx::query(LOCK).execute(&mut *waiting).await.unwrap_err());
    let expected = "a record that others are changing is unavailable; try again later";
    assert_eq!(late.to_string(), expected);
    Ok(())
}

#[tokio::test]
async fn exclusive_work_that_is_repeated_at_once_leaves_connections_in_the_pool() -> Result<()> {
    let database = TestDatabase::empty().await?;
    let db = open(&Runtime::new("program"), &database.url)?;
    let mut used = HashSet::new();
    for turn in 0..100 {
        let work = async { Ok(sqlx::query_scalar(SESSION).fetch_one(&db).await?) };
        let session: Option<i32> = exclusively(&db, "work", work).await?;
        used.insert(session.with_context(|| format!("the lock is held after turn {turn}"))?);
    }
    assert!(used.len() <= 2, "the pool opened connections: {used:?}");
    Ok(())
}

#[tokio::test]
async fn exclusive_work_that_is_cancelled_or_fails_gives_up_its_lock() -> Result<()> {
    let database = TestDatabase::empty().await?;
    let db = open(&Runtime::new("program"), &database.url)?;
    let free = async || exclusively(&db, "work", async { Ok(()) }).await;
    let started = Semaphore::new(0);
    let endless = async {
        started.add_permits(1);
        pending::<Result<(), Fault>>().await
    };
    let mut cancelled = Box::pin(exclusively(&db, "work", endless));
    tokio::select! {
        _ = &mut cancelled => panic!("the work has no end"),
        begun = started.acquire() => drop(begun?),
    }
    assert_eq!(free().await?, None, "another holds the lock");
    drop(cancelled);
    eventually("the lock of cancelled work", async || free().await.ok()?).await;

    let failing = async { Err::<(), _>(Fault::Unavailable("the work")) };
    exclusively(&db, "work", failing).await.expect_err("the work fails");
    assert_eq!(free().await?, Some(()));
    Ok(())
}

/// A future that is not polled is like a program that is stopped: its connection stays open.
#[tokio::test]
async fn a_replica_that_is_frozen_loses_its_exclusive_work_to_another_one() -> Result<()> {
    let database = TestDatabase::empty().await?;
    let db = open(&Runtime::new("program"), &database.url)?;
    let started = Semaphore::new(0);
    let endless = || async {
        started.add_permits(1);
        pending::<Result<(), Fault>>().await
    };
    let is_free =
        async |name| exclusively(&db, name, async { Ok(()) }).await.map(|done| done.is_some());
    let mut frozen = Box::pin(exclusively(&db, "frozen", endless()));
    let mut alive = Box::pin(exclusively(&db, "alive", endless()));
    tokio::select! {
        _ = &mut frozen => panic!("the work has no end"),
        _ = &mut alive => panic!("the work has no end"),
        acquired = started.acquire_many(2) => drop(acquired?),
    }

    let released = async {
        let is_released = || async { is_free("frozen").await.ok()?.then_some(()) };
        for _ in 0..2 {
            if timeout(Duration::from_secs(15), eventually("the lock", is_released)).await.is_ok() {
                return;
            }
        }
        panic!("the lock is not released within half a minute");
    };
    tokio::select! {
        _ = &mut alive => panic!("the work has no end"),
        () = released => {}
    }
    assert!(!is_free("alive").await?, "a replica that works for long keeps its lock");
    frozen.await.expect_err("the work of a replica that has lost its lock is cancelled");
    Ok(())
}

/// This happens when the client of a call disconnects.
#[tokio::test]
async fn a_cancelled_begin_leaves_no_open_transaction_in_the_pool() -> Result<()> {
    let database = TestDatabase::empty().await?;
    let (wire, url) = Wire::to_postgres(&database.url).await?;
    let runtime = Runtime::new("program");
    let config = DatabaseConfig { pool: pool(1), ..config(&url) };
    let opened = Database::open(&runtime, &config, Migrator::DEFAULT)?;
    let pool = opened.pool();
    sqlx::query("create table written (number int)").execute(pool).await?;

    let idle = || async { (pool.num_idle() == 1).then_some(()) };
    eventually("the connection is returned", idle).await;
    wire.delay_answers(Duration::from_millis(50));
    assert!(
        timeout(Duration::from_millis(10), begin(pool)).await.is_err(),
        "the call is cancelled"
    );
    sqlx::query("insert into written values (1)").execute(pool).await?;
    let other = open(&Runtime::new("other"), &database.url)?;
    let kept: i64 = sqlx::query_scalar("select count(*) from written").fetch_one(&other).await?;
    assert_eq!(kept, 1, "acknowledged writes are committed");
    Ok(())
}
