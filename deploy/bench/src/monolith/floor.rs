//! The database of the baseline without a program: its rows, `pgbench` and `COPY`.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use futures::TryStreamExt;
use sqlx::{ConnectOptions as _, Connection, PgConnection, postgres::PgConnectOptions};
use tokio::process::Command;
use uuid::Uuid;

use super::{SCHEMA, store};
use crate::fixture::{CASES, Fixture, LISTED, RESULTS, STEPS_OF_RESULT};

/// The customer of all rows.
pub(crate) const CUSTOMER: Uuid = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001);

/// The project with the cases that are read and changed.
pub(crate) const PROJECT: Uuid = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0002);

/// The project in which test cases are created.
pub(crate) const GROWING_PROJECT: Uuid = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0004);

/// The project with the long list.
pub(crate) const LONG_PROJECT: Uuid = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0003);

/// Number of connections of `pgbench`, that of the pool.
const CONNECTIONS: u32 = super::CONNECTIONS;

/// Returns the records of the baseline that requests read and change.
pub(crate) fn fixture() -> Fixture {
    Fixture {
        project: format!("/api/projects/{PROJECT}"),
        cases: (1..=CASES).map(|number| case(number).to_string()).collect(),
        growing_project: format!("/api/projects/{GROWING_PROJECT}"),
        long_project: Some(format!("/api/projects/{LONG_PROJECT}")),
        queued_set: None,
    }
}

/// Returns the id of a test case in [`PROJECT`], from 1.
pub(crate) fn case(number: usize) -> Uuid {
    Uuid::from_u128(0x0190_0000_0000_7000_9000_0000_0000_0000 + number as u128)
}

/// Directories in which packages install `pgbench`, which may not be on the PATH.
const PACKAGES: &str = "/usr/lib/postgresql";

/// The database of the baseline.
pub(crate) struct Floor {
    options: PgConnectOptions,
    url: String,
}

impl Floor {
    /// Creates the tables and the rows in an empty database.
    pub(crate) async fn create(options: PgConnectOptions, url: String) -> Result<Self> {
        let floor = Self { options: options.disable_statement_logging(), url };
        let mut db = floor.connect().await?;
        sqlx::raw_sql(SCHEMA).execute(&mut db).await?;
        sqlx::query(
            "insert into project values ($1, $2, 'Cases'), ($1, $3, 'Many'), ($1, $4, 'Growing')",
        )
        .bind(CUSTOMER)
        .bind(PROJECT)
        .bind(LONG_PROJECT)
        .bind(GROWING_PROJECT)
        .execute(&mut db)
        .await?;
        insert_cases(&mut db, PROJECT, case(0), CASES).await?;
        insert_cases(&mut db, LONG_PROJECT, case(1_000_000), LISTED).await?;
        sqlx::query(
            "insert into test_plan (customer_id, id, test_case_id, revision, status, test_type,
                 instances, minimum_duration_in_min)
             select customer_id, gen_random_uuid(), id, 1, 'New', 'Default', 1, 0
             from test_case where project_id = $1",
        )
        .bind(PROJECT)
        .execute(&mut db)
        .await?;
        sqlx::raw_sql("vacuum analyze").execute(&mut db).await?;
        Ok(floor)
    }

    async fn connect(&self) -> Result<PgConnection> {
        Ok(PgConnection::connect_with(&self.options).await?)
    }

    /// Reads the columns of the long list with `COPY`. Returns bytes a second.
    pub(crate) async fn copy_list(&self) -> Result<f64> {
        let mut db = self.connect().await?;
        let select = store::LIST
            .replace("$1", &format!("'{CUSTOMER}'"))
            .replace("$2", &format!("'{LONG_PROJECT}'"))
            .replace("$3", &format!("'{}'", Uuid::max()))
            .replace("$4", "all");
        let began = Instant::now();
        let mut rows = db.copy_out_raw(&format!("copy ({select}) to stdout")).await?;
        let mut bytes = 0;
        while let Some(row) = rows.try_next().await? {
            bytes += row.len();
        }
        Ok(bytes as f64 / began.elapsed().as_secs_f64())
    }

    /// Writes the rows of [`RESULTS`] results with their steps by `COPY`, in one transaction.
    /// Returns instances a second.
    pub(crate) async fn copy_results(&self) -> Result<f64> {
        let report = Uuid::now_v7();
        let (mut instances, mut details) = (Vec::new(), Vec::new());
        for nr in 1..=RESULTS {
            let (id, seconds) = (Uuid::now_v7(), nr % 100 / 10);
            writeln!(instances, "{CUSTOMER}\t{report}\t{id}\t{nr}\t\\N\t\\N\t{seconds}\tPassed")?;
            writeln!(details, "{CUSTOMER}\t{report}\t{nr}\t{}", *STEPS_OF_RESULT)?;
        }
        let mut db = self.connect().await?;
        let began = Instant::now();
        let mut tx = db.begin().await?;
        for (table, rows) in [("instance", &instances), ("instance_detail", &details)] {
            let mut copy = tx.copy_in_raw(&format!("copy {table} from stdin")).await?;
            copy.send(rows.as_slice()).await?;
            copy.finish().await?;
        }
        tx.commit().await?;
        Ok(RESULTS as f64 / began.elapsed().as_secs_f64())
    }

    /// Runs the statement of a read by `pgbench`. Returns statements a second.
    pub(crate) async fn pgbench_read(&self, time: Duration) -> Result<Option<f64>> {
        self.pgbench(time, PROJECT, &[RANDOM_CASE], store::GET).await
    }

    /// Runs the statement of a creation by `pgbench`. Returns statements a second.
    pub(crate) async fn pgbench_create(&self, time: Duration) -> Result<Option<f64>> {
        let values =
            ["gen_random_uuid()", "gen_random_uuid()::text", "'Made'", "''", "gen_random_uuid()"];
        self.pgbench(time, GROWING_PROJECT, &values, store::CREATE).await
    }

    /// Runs the statement of an update by `pgbench`. Returns statements a second.
    pub(crate) async fn pgbench_update(&self, time: Duration) -> Result<Option<f64>> {
        let values = [RANDOM_CASE, "'Changed'", "null", "null", "gen_random_uuid()"];
        self.pgbench(time, PROJECT, &values, store::UPDATE).await
    }

    /// Runs a statement by `pgbench`, with the customer, the project and these values as parameters.
    /// Returns `None` if it is not installed.
    async fn pgbench(
        &self,
        time: Duration,
        project: Uuid,
        values: &[&str],
        statement: &str,
    ) -> Result<Option<f64>> {
        let Some(program) = pgbench() else { return Ok(None) };
        let mut script = statement
            .replace("$1", &format!("'{CUSTOMER}'"))
            .replace("$2", &format!("'{project}'"));
        for (number, value) in values.iter().enumerate().rev() {
            script = script.replace(&format!("${}", number + 3), value);
        }
        // The statement ends at its last line.
        let script = format!("\\set n random(1, {CASES})\n{};\n", script.replace('\n', " "));
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), script)?;
        let output = Command::new(program)
            .args(["--no-vacuum", "--protocol=prepared", "--jobs=1"])
            .arg(format!("--client={CONNECTIONS}"))
            .arg(format!("--time={}", time.as_secs().max(1)))
            .arg("--file")
            .arg(file.path())
            .arg(&self.url)
            .stdin(Stdio::null())
            .output()
            .await?;
        let text = String::from_utf8_lossy(&output.stdout);
        let problem = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "pgbench failed: {problem}");
        let line = text.lines().find_map(|line| line.strip_prefix("tps = "));
        let figure = line.and_then(|line| line.split(' ').next()).context("pgbench: no tps")?;
        Ok(Some(figure.parse()?))
    }
}

/// The id of test case `n` of `pgbench`, as [`case`] computes it.
const RANDOM_CASE: &str = "('01900000-0000-7000-9000-' || lpad(to_hex(:n::bigint), 12, '0'))::uuid";

/// Adds test cases with consecutive ids after `before`.
async fn insert_cases(
    db: &mut PgConnection,
    project: Uuid,
    before: Uuid,
    count: usize,
) -> Result<()> {
    let ids: Vec<Uuid> =
        (1..=count).map(|n| Uuid::from_u128(before.as_u128() + n as u128)).collect();
    sqlx::query(
        "insert into test_case (customer_id, project_id, id, identifier, name, description,
             last_plan_status)
         select $1, $2, id, 'case-' || n - 1, 'Case ' || n - 1, repeat('d', 200), $4
         from unnest($3::uuid[]) with ordinality as new (id, n)",
    )
    .bind(CUSTOMER)
    .bind(project)
    .bind(ids)
    .bind((project == PROJECT).then_some("New"))
    .execute(db)
    .await?;
    Ok(())
}

fn pgbench() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = std::fs::read_dir(PACKAGES).into_iter().flatten().flatten();
    let packages = versions.map(|version| version.path().join("bin"));
    let mut dirs = std::env::split_paths(&path).chain(packages);
    dirs.find_map(|dir| Some(dir.join("pgbench")).filter(|file| Path::is_file(file)))
}
