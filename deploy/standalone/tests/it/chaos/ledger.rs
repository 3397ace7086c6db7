//! The ledgers, compared with what Assay has stored and published.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use assay_database::connect_options;
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgPool};
use tokio::time::{Instant, interval};

use super::{
    load::{Load, TESTS},
    receivers::{Mailbox, Receiver},
};
use crate::{
    fleet::{Fleet, SERVICES},
    world::id,
};

const POLL: Duration = Duration::from_secs(1);

/// Shortens pauses after failed attempts, and claims of killed programs, which last minutes. The claims of
/// running programs are over in time: no receiver hangs any more.
const HURRY: &[(&str, &str)] = &[
    (
        "identity",
        "update mail set next_attempt_at = least(next_attempt_at, now() + interval '10 seconds')",
    ),
    (
        "identity",
        "update unfinished_work set next_attempt_at = now() where next_attempt_at is not null",
    ),
    (
        "notification",
        "update webhook set rests_until = least(rests_until, now() + interval '10 seconds')",
    ),
    (
        "notification",
        "update webhook_delivery set next_attempt_at = now() where next_attempt_at is not null",
    ),
];

/// The ledgers of clients and receivers, and the fleet.
pub(super) struct Ledger<'a> {
    pub(super) fleet: &'a Fleet,
    pub(super) load: &'a Load,
    pub(super) mailbox: &'a Mailbox,
    pub(super) receivers: &'a [Receiver; 2],
}

impl Ledger<'_> {
    /// Waits until everything that was acknowledged has taken effect.
    ///
    /// # Panics
    ///
    /// If that takes longer.
    pub(super) async fn settle(&self, within: Duration) {
        let (started, mut ticks) = (Instant::now(), interval(POLL));
        for (service, statement) in HURRY {
            let db = self.db(service).await;
            sqlx::query(AssertSqlSafe(*statement)).execute(&db).await.unwrap();
        }
        loop {
            ticks.tick().await;
            let missing = self.missing().await;
            if missing.is_empty() {
                println!("settled {:.1} s after the last fault", started.elapsed().as_secs_f64());
                return;
            }
            assert!(started.elapsed() < within, "after {within:?}: {missing:#?}");
        }
    }

    /// Returns effects of acknowledged writes that are missing.
    async fn missing(&self) -> Vec<String> {
        let (executions, reports) =
            self.load.read(|known| (known.executions.clone(), known.reports.clone()));
        let mut missing = Vec::new();
        for (number, receiver) in self.receivers.iter().enumerate() {
            let reported = subjects(receiver, "TestCase");
            let ended = subjects(receiver, "TestSet");
            missing.push((format!("reports at receiver {number}"), count(&reports, &reported)));
            missing.push((format!("executions at receiver {number}"), count(&executions, &ended)));
        }
        let mailed = self.mailbox.mails().into_keys().map(|id| execution_of(&id)).collect();
        missing.push(("mails".to_owned(), executions.difference(&mailed).count()));
        let runs = self.number("execution", "select coalesce(sum(runs), 0) from case_day").await;
        missing.push(("runs of days".to_owned(), reports.len().abs_diff(runs)));
        let mut missing: Vec<_> = missing
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(what, count)| format!("{what}: {count}"))
            .collect();
        if !missing.is_empty() {
            return missing;
        }
        let databases = SERVICES.map(|name| self.fleet.database(name));
        let report = |one: &dyn fmt::Display| missing.push(one.to_string());
        assay::verify(databases.each_ref(), report).await.unwrap();
        missing
    }

    /// Returns everything that is wrong after all effects.
    pub(super) async fn wrong(&self) -> Vec<String> {
        let mut wrong = self.fleet.errors();
        self.load.read(|known| {
            wrong.extend(known.refused.clone());
            let answers = known.answers.iter().filter(|(status, _)| **status >= 500);
            let odd = answers.filter(|(status, _)| **status != 503);
            wrong.extend(odd.map(|(status, count)| format!("{count} answers with {status}")));
            if known.reports.len() != TESTS * known.executions.len() {
                wrong.push(format!("{} acknowledged reports", known.reports.len()));
            }
        });
        wrong.extend(self.stored().await);
        wrong.extend(self.reviews().await);
        wrong.extend(self.notifications().await);
        for (what, command) in
            [("No differences", &["verify"][..]), ("No dead letters", &["dead-letters", "list"])]
        {
            let (_, output) = self.fleet.command(command).await;
            if !output.starts_with(what) {
                wrong.push(output);
            }
        }
        wrong
    }

    /// Returns executions and reports that are not stored as they were acknowledged.
    async fn stored(&self) -> Vec<String> {
        let mut executions = BTreeSet::new();
        for project in self.load.projects() {
            let listed = self.load.api().get(&format!("{project}/executions")).await.ok();
            executions.extend(listed.as_array().unwrap().iter().map(|one| id(one).to_owned()));
        }
        let db = self.db("execution").await;
        let reports = "select id::text from test_report";
        let reports: Vec<String> = sqlx::query_scalar(reports).fetch_all(&db).await.unwrap();
        self.load.read(|known| {
            differences("execution", &known.executions, &executions)
                .chain(differences("report", &known.reports, &reports.into_iter().collect()))
                .collect()
        })
    }

    /// Returns reviews that are lost.
    async fn reviews(&self) -> Vec<String> {
        let mut lost = Vec::new();
        for path in self.load.read(|known| known.reviewed.clone()) {
            let report = self.load.api().get(&path).await.ok();
            if report["Status"] != "Accepted" {
                lost.push(format!("{path} is {}", report["Status"]));
            }
        }
        lost
    }

    /// Returns reports and executions that were not notified exactly once, in the database and at the
    /// receivers, and mails of something else.
    async fn notifications(&self) -> Vec<String> {
        let db = self.db("notification").await;
        let counted = "select target_id, count(*) from notification
                       where action in ('Finished', 'Completed') group by target_id";
        let counted: Vec<(String, i64)> = sqlx::query_as(counted).fetch_all(&db).await.unwrap();
        let known: BTreeSet<String> = self.load.read(|known| &known.executions | &known.reports);
        let mut wrong: Vec<String> = counted
            .iter()
            .filter(|(id, count)| *count != 1 || !known.contains(id))
            .map(|(id, count)| format!("{count} notifications of {id}"))
            .collect();
        for receiver in self.receivers {
            let mut ids = BTreeMap::<String, usize>::new();
            for (_, notification) in receiver.deliveries().into_values() {
                *ids.entry(target(&notification)).or_default() += 1;
            }
            let odd = ids.into_iter().filter(|(id, count)| *count != 1 || !known.contains(id));
            wrong.extend(odd.map(|(id, count)| format!("{count} ids of deliveries about {id}")));
        }
        let mails = self.mailbox.mails().into_keys();
        wrong.extend(mails.filter(|id| !known.contains(&execution_of(id))));
        wrong
    }

    async fn db(&self, service: &str) -> PgPool {
        let options = connect_options(&self.fleet.database(service)).unwrap();
        PgPool::connect_with(options).await.unwrap()
    }

    async fn number(&self, service: &str, statement: &'static str) -> usize {
        let number = sqlx::query_scalar::<_, i64>(statement);
        let number = number.fetch_one(&self.db(service).await).await.unwrap();
        usize::try_from(number).unwrap()
    }
}

/// The figures as rows of a table.
impl fmt::Display for Ledger<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let repeated = |counts: &mut dyn Iterator<Item = usize>| -> usize {
            counts.map(|count| count - 1).sum()
        };
        self.load.read(|known| {
            for (status, count) in &known.answers {
                let status = if *status == 0 { "no answer".to_owned() } else { status.to_string() };
                writeln!(f, "| answers: {status} | {count} |")?;
            }
            writeln!(f, "| executions acknowledged and stored | {} |", known.executions.len())?;
            writeln!(f, "| reports, each notified once | {} |", known.reports.len())?;
            writeln!(f, "| reviews acknowledged and stored | {} |", known.reviewed.len())
        })?;
        for (name, receiver) in ["", " that hung"].iter().zip(self.receivers) {
            let deliveries = receiver.deliveries();
            let mut counts = deliveries.values().map(|(count, _)| *count);
            let extra = repeated(&mut counts);
            let count = deliveries.len();
            writeln!(
                f,
                "| deliveries to the webhook{name}, of these repeated | {count}, {extra} |"
            )?;
        }
        let mails = self.mailbox.mails();
        let extra = repeated(&mut mails.values().copied());
        writeln!(f, "| mails, of these repeated with their Message-ID | {}, {extra} |", mails.len())
    }
}

/// The ids of the targets of all notifications from a source that a receiver has.
fn subjects(receiver: &Receiver, source: &str) -> BTreeSet<String> {
    let deliveries = receiver.deliveries().into_values().map(|(_, notification)| notification);
    deliveries.filter(|one| one["Source"] == source).map(|one| target(&one)).collect()
}

fn target(notification: &Value) -> String {
    notification["TargetId"].as_str().unwrap_or_default().to_owned()
}

/// The id of the execution in the Message-ID of a mail about it.
fn execution_of(message_id: &str) -> String {
    message_id.trim_start_matches('<').split('.').next().unwrap_or_default().to_owned()
}

/// The number of known ids that are not in a set.
fn count(known: &BTreeSet<String>, there: &BTreeSet<String>) -> usize {
    known.difference(there).count()
}

fn differences<'a>(
    what: &'a str,
    known: &'a BTreeSet<String>,
    stored: &BTreeSet<String>,
) -> impl Iterator<Item = String> + use<'a> {
    let lost: Vec<_> = known.difference(stored).map(|id| format!("lost {what} {id}")).collect();
    let odd = stored.difference(known).map(|id| format!("unacknowledged {what} {id}"));
    lost.into_iter().chain(odd.collect::<Vec<_>>())
}
