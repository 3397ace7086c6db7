//! Other identifiers of test cases. When a test was renamed, its results still belong to its case.

use std::collections::{HashMap, HashSet};

use assay_events::{publish, publish_all};
use assay_proto::{
    CustomerId, Fault, OnConstraint, ProjectId, TestCaseId,
    catalog::{TestCase, TestCaseAliasesInput},
};
use assay_records::{Action, Check};
use sqlx::{PgExecutor, PgTransaction};

use crate::{event::EventSource, project::store::lock_exclusive, records::Records};

/// Maximum number of aliases of a test case.
const MOST_ALIASES: usize = 100;

/// Checks the aliases of a test case, and returns each once.
pub(super) fn valid(input: TestCaseAliasesInput) -> Result<Vec<String>, Fault> {
    let mut check = Check::default();
    if input.aliases.len() > MOST_ALIASES {
        check.refuse("Aliases", format!("must be at most {MOST_ALIASES}"));
    }
    for (index, alias) in input.aliases.iter().enumerate() {
        check.name(&format!("Aliases/{index}"), alias);
    }
    check.done()?;
    let mut seen = HashSet::new();
    Ok(input.aliases.into_iter().filter(|alias| seen.insert(alias.clone())).collect())
}

/// Returns the aliases of a test case in alphabetical order.
pub(super) async fn list(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: TestCaseId,
) -> Result<Vec<String>, Fault> {
    let aliases = sqlx::query_scalar(
        "select array(
             select identifier from test_case_alias
             where customer_id = $1 and test_case_id = $3 order by identifier
         )
         from test_case
         where customer_id = $1 and project_id = $2 and id = $3 and deleted_at is null",
    );
    let aliases = aliases.bind(customer).bind(project).bind(id).fetch_optional(db).await?;
    aliases.ok_or(Fault::NotFound("test case"))
}

/// Replaces the aliases of a test case. Those of deleted ones are free.
pub(super) async fn replace(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: TestCaseId,
    aliases: &[String],
) -> Result<(), Fault> {
    // So that no other transaction adds a test case with one of these identifiers meanwhile.
    lock_exclusive(tx, customer, project).await?;
    Records::<TestCase>::of(customer, project).lock(tx, id).await?;
    refuse_identifiers(tx, customer, project, aliases).await?;
    sqlx::query(
        "delete from test_case_alias
         where customer_id = $1 and (test_case_id = $2 or project_id = $3
             and identifier = any($4) and exists (
                 select from test_case
                 where customer_id = $1 and id = test_case_alias.test_case_id
                   and deleted_at is not null
             ))",
    )
    .bind(customer)
    .bind(id)
    .bind(project)
    .bind(aliases)
    .execute(&mut **tx)
    .await?;
    sqlx::query(
        "insert into test_case_alias (customer_id, project_id, identifier, test_case_id)
         select $1, $2, identifier, $3 from unnest($4::text[]) as identifier
         order by identifier",
    )
    .bind(customer)
    .bind(project)
    .bind(id)
    .bind(aliases)
    .execute(&mut **tx)
    .await
    .on_constraint("test_case_alias_pkey", Fault::AlreadyExists("test case with this alias"))?;
    publish(tx, &EventSource::TestCase(project, id).event(Action::Changed, customer, None)?).await
}

/// Adds an alias to each of these locked test cases. Those of deleted ones are free.
pub(crate) async fn add(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    aliases: &HashMap<TestCaseId, String>,
) -> Result<(), Fault> {
    let (cases, identifiers): (Vec<TestCaseId>, Vec<&str>) =
        aliases.iter().map(|(case, alias)| (*case, alias.as_str())).unzip();
    sqlx::query(
        "insert into test_case_alias (customer_id, project_id, identifier, test_case_id)
         select $1, $2, identifier, test_case_id
         from unnest($3::text[], $4::uuid[]) as alias (identifier, test_case_id)
         order by identifier
         on conflict on constraint test_case_alias_pkey
             do update set test_case_id = excluded.test_case_id",
    )
    .bind(customer)
    .bind(project)
    .bind(&identifiers)
    .bind(&cases)
    .execute(&mut **tx)
    .await?;
    let changed: Vec<_> = cases.iter().map(|case| EventSource::TestCase(project, *case)).collect();
    let events = EventSource::events(&changed, Action::Changed, customer, project);
    publish_all(tx, events).await
}

/// Fails if there are active test cases with these identifiers: results belong to them.
async fn refuse_identifiers(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    aliases: &[String],
) -> Result<(), Fault> {
    let taken: Vec<String> = sqlx::query_scalar(
        "select identifier from test_case
         where customer_id = $1 and project_id = $2 and identifier = any($3) and live",
    )
    .bind(customer)
    .bind(project)
    .bind(aliases)
    .fetch_all(&mut **tx)
    .await?;
    let mut check = Check::default();
    for (index, alias) in aliases.iter().enumerate() {
        if taken.contains(alias) {
            let problem = "is the identifier of a test case; archive or delete that one first";
            check.refuse(format!("Aliases/{index}"), problem);
        }
    }
    check.done()
}

/// Finds the active test cases with these aliases, and locks them in the order of their ids.
pub(crate) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    identifiers: &[&str],
) -> Result<Vec<(String, TestCaseId)>, Fault> {
    let aliased = sqlx::query_as(
        "select test_case_alias.identifier, test_case.id
         from test_case_alias
         join test_case on test_case.customer_id = $1 and test_case.id = test_case_id
         where test_case_alias.customer_id = $1 and test_case_alias.project_id = $2
           and test_case_alias.identifier = any($3) and live
         order by test_case.id, test_case_alias.identifier
         for no key update of test_case",
    );
    let aliased = aliased.bind(customer).bind(project).bind(identifiers).persistent(false);
    Ok(aliased.fetch_all(&mut **tx).await?)
}
