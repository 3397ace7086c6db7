//! Cause rules in PostgreSQL. Every statement is bound to one customer.

use assay_auth::Caller;
use assay_fingerprint::Fingerprint;
use assay_proto::{
    CauseRuleId, CustomerId, ExecutionId, Fault, OnConstraint, ProjectId, execution::CauseRule,
};
use assay_rpc::list::{Rows, Slice};
use sqlx::{AssertSqlSafe, PgExecutor, PgPool, PgTransaction};

use super::CauseRules;

/// Maximum number of rules of a project. Patterns are compiled for each report with failures.
pub const MOST: i64 = 50;

const COLUMNS: &str = CauseRule::COLUMNS;

/// The effect of a new rule.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Text that matches a pattern does not count.
    Noise(String),
    /// The first cause counts as the second one.
    Same(Fingerprint, Fingerprint),
}

/// Lists the rules of a project, newest first.
pub async fn list(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    slice: &Slice,
) -> Result<Rows<CauseRule>, Fault> {
    let rules = sqlx::query_as(AssertSqlSafe(format!(
        "select {COLUMNS} from cause_rule
         where customer_id = $1 and project_id = $2 and id < $3
           and ($4::text is null
                or concat_ws(E'\\n', pattern, headline, same_headline, comment) ilike $4)
         order by id desc
         limit $5"
    )));
    let rules = rules.bind(customer).bind(project).bind(slice.before()?);
    slice.read(rules.bind(&slice.pattern).bind(slice.limit).fetch(db)).await
}

/// Reads the rules of a project, given as text, to apply them.
pub async fn of_project(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: &str,
) -> Result<CauseRules, Fault> {
    let rules = sqlx::query_as(
        "select pattern, fingerprint, same_as from cause_rule
         where customer_id = $1 and project_id = $2::uuid",
    );
    applied(rules.bind(customer).bind(project).fetch_all(db).await?)
}

/// Reads the rules of the project of an execution, to apply them.
pub async fn of_execution(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<CauseRules, Fault> {
    let rules = sqlx::query_as(
        "select pattern, fingerprint, same_as from cause_rule
         where customer_id = $1
           and project_id = (select project_id from execution where customer_id = $1 and id = $2)",
    );
    applied(rules.bind(customer).bind(execution).fetch_all(db).await?)
}

type Row = (Option<String>, Option<Vec<u8>>, Option<Vec<u8>>);

fn applied(rows: Vec<Row>) -> Result<CauseRules, Fault> {
    let (mut patterns, mut same) = (Vec::new(), Vec::new());
    for (pattern, fingerprint, same_as) in rows {
        patterns.extend(pattern);
        if let Some((one, other)) = fingerprint.zip(same_as) {
            let read = |bytes: &[u8]| Fingerprint::try_from(bytes).map_err(Fault::internal);
            same.push((read(&one)?, read(&other)?));
        }
    }
    CauseRules::new(&patterns, same)
}

/// Returns the headline of the latest failure with a cause, if the project has one.
pub async fn headline(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    fingerprint: Fingerprint,
) -> Result<Option<String>, Fault> {
    let headline = sqlx::query_scalar(
        "select headline from kept_failure
         where customer_id = $1 and project_id = $2 and fingerprint = $3
         order by execution_id desc
         limit 1",
    );
    let headline = headline.bind(customer).bind(project).bind(&fingerprint.as_bytes()[..]);
    Ok(headline.fetch_optional(db).await?)
}

/// Locks the rules of a project until the end of the transaction, so that they change one after the
/// other, and fails if there are as many as there may be.
pub async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
) -> Result<(), Fault> {
    let lock =
        "select pg_advisory_xact_lock(hashtextextended('cause rules ' || $1::text || $2::text, 0))";
    sqlx::query(lock).bind(customer).bind(project).execute(&mut **tx).await?;
    Ok(())
}

/// Fails if a project has more rules than it may have.
pub async fn check_number(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
) -> Result<(), Fault> {
    let count = sqlx::query_scalar(
        "select count(*) from cause_rule where customer_id = $1 and project_id = $2",
    );
    let count: i64 = count.bind(customer).bind(project).fetch_one(&mut **tx).await?;
    if count <= MOST {
        return Ok(());
    }
    let reason =
        format!("a project may have {MOST} rules for causes: delete one, or join patterns");
    Err(Fault::Refused { code: "too_many_cause_rules", reason })
}

/// Stores a rule of a project, with the messages of the causes that it joins.
pub async fn create(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    project: ProjectId,
    (kind, comment): (&Kind, &str),
    headlines: Option<(String, String)>,
) -> Result<CauseRule, Fault> {
    let (pattern, pair) = match kind {
        Kind::Noise(pattern) => (Some(pattern), None),
        Kind::Same(one, other) => (None, Some((one, other))),
    };
    let (headline, same_headline) = headlines.unzip();
    let insert = sqlx::query_as(AssertSqlSafe(format!(
        "insert into cause_rule (customer_id, id, project_id, pattern, fingerprint, same_as,
             headline, same_headline, comment, created_by_id, created_by)
         values ($1, next_id(null), $2, $3, $4, $5, $6, $7, $8, $9, $10)
         returning {COLUMNS}"
    )));
    insert
        .bind(caller.customer)
        .bind(project)
        .bind(pattern)
        .bind(pair.map(|(one, _)| &one.as_bytes()[..]))
        .bind(pair.map(|(_, other)| &other.as_bytes()[..]))
        .bind(headline)
        .bind(same_headline)
        .bind(comment)
        .bind(caller.user)
        .bind(&*caller.name)
        .fetch_one(&mut **tx)
        .await
        .on_constraint("cause_rule_pattern_key", Fault::AlreadyExists("rule with this pattern"))
        .on_constraint("cause_rule_fingerprint_key", Fault::AlreadyExists("rule for this cause"))
}

pub async fn delete(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: CauseRuleId,
) -> Result<(), Fault> {
    let delete = sqlx::query(
        "delete from cause_rule where customer_id = $1 and project_id = $2 and id = $3",
    );
    let done = delete.bind(customer).bind(project).bind(id).execute(&mut **tx).await?;
    if done.rows_affected() == 0 { Err(Fault::NotFound("cause rule")) } else { Ok(()) }
}
