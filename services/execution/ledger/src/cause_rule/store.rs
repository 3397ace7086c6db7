//! Cause rules in PostgreSQL. Every statement is bound to one customer.

use assay_auth::Caller;
use assay_fingerprint::Fingerprint;
use assay_proto::{
    CauseRuleId, CustomerId, ExecutionId, Fault, OnConstraint, ProjectId, execution::CauseRule,
};
use assay_rpc::list::{Rows, Slice};
use sqlx::{AssertSqlSafe, FromRow, PgConnection, PgExecutor, PgPool, PgTransaction};

use super::{Cause, CauseRules, Rule};

/// Maximum number of rules of a project. Patterns are compiled for each report with failures.
pub const MOST: i64 = 50;

const COLUMNS: &str = CauseRule::COLUMNS;

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
    CauseRules::new(&stored(db, customer, project).await?)
}

/// Reads the rules of the project of an execution, to apply them.
pub async fn of_execution(
    db: &mut PgConnection,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<CauseRules, Fault> {
    let project = sqlx::query_scalar(
        "select project_id::text from execution where customer_id = $1 and id = $2",
    );
    let project: Option<String> =
        project.bind(customer).bind(execution).fetch_optional(&mut *db).await?;
    match project {
        Some(project) => of_project(db, customer, &project).await,
        None => Ok(CauseRules::default()),
    }
}

/// Reads the rules of a project, given as text, in the order of their creation.
pub async fn stored(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: &str,
) -> Result<Vec<Rule>, Fault> {
    let rules = sqlx::query_as(
        "select pattern, fingerprint, lines, same_as, same_lines from cause_rule
         where customer_id = $1 and project_id = $2::uuid
         order by id",
    );
    let rules: Vec<Row> = rules.bind(customer).bind(project).fetch_all(db).await?;
    rules.into_iter().map(Row::rule).collect()
}

#[derive(FromRow)]
struct Row {
    pattern: Option<String>,
    fingerprint: Option<Vec<u8>>,
    lines: Option<Vec<String>>,
    same_as: Option<Vec<u8>>,
    same_lines: Option<Vec<String>>,
}

impl Row {
    fn rule(self) -> Result<Rule, Fault> {
        if let Some(pattern) = self.pattern {
            return Ok(Rule::Noise(pattern));
        }
        let cause = |fingerprint: Option<Vec<u8>>, lines: Option<Vec<String>>| {
            let fingerprint = fingerprint.as_deref().unwrap_or_default();
            let fingerprint = Fingerprint::try_from(fingerprint).map_err(Fault::internal)?;
            Ok::<_, Fault>(Cause { fingerprint, lines: lines.unwrap_or_default() })
        };
        Ok(Rule::Same(cause(self.fingerprint, self.lines)?, cause(self.same_as, self.same_lines)?))
    }
}

/// Locks the rules of a project until the end of the transaction, so that they change one after the
/// other.
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

/// Stores a rule of a project.
pub async fn create(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    project: ProjectId,
    rule: &Rule,
    comment: &str,
) -> Result<CauseRule, Fault> {
    let (pattern, causes) = match rule {
        Rule::Noise(pattern) => (Some(pattern), None),
        Rule::Same(one, other) => (None, Some([one, other])),
    };
    let of = |index: usize| causes.map(|causes: [&Cause; 2]| causes[index]);
    let insert = sqlx::query_as(AssertSqlSafe(format!(
        "insert into cause_rule (customer_id, id, project_id, pattern, fingerprint, lines, headline,
             same_as, same_lines, same_headline, comment, created_by_id, created_by)
         values ($1, next_id(null), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
         returning {COLUMNS}"
    )));
    let mut insert = insert.bind(caller.customer).bind(project).bind(pattern);
    for cause in [of(0), of(1)] {
        insert = insert
            .bind(cause.map(|cause| &cause.fingerprint.as_bytes()[..]))
            .bind(cause.map(|cause| &cause.lines))
            .bind(cause.map(Cause::headline));
    }
    insert
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
