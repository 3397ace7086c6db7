//! Many test cases at once, in PostgreSQL. Every statement is bound to one customer.

use std::collections::HashMap;

use assay_proto::{CustomerId, Fault, ProjectId, TestCaseId, catalog::TestCaseInput};
use sqlx::{FromRow, PgTransaction};

/// A test case as it is.
#[derive(FromRow)]
pub(super) struct Stored {
    pub(super) id: TestCaseId,
    identifier: String,
    name: String,
    description: String,
}

impl Stored {
    /// What it says, as a client would write it.
    pub(super) fn input(&self) -> TestCaseInput {
        TestCaseInput {
            name: self.name.clone(),
            description: self.description.clone(),
            identifier: Some(self.identifier.clone()),
            archived: false,
        }
    }
}

/// Locks the live cases with these identifiers, in the order of their ids, so that nobody waits for
/// each other.
///
/// The statement is not prepared. PostgreSQL thus plans it for these very identifiers: it hashes
/// them or looks each of them up. The plan of a prepared statement, which holds for any number of
/// them, may compare each case of a large project with all of them.
pub(super) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    identifiers: &[&str],
) -> Result<HashMap<String, Stored>, Fault> {
    let live = sqlx::query_as::<_, Stored>(
        "select id, identifier, name, description from test_case
         where customer_id = $1 and project_id = $2 and identifier = any($3) and live
         order by id
         for no key update",
    );
    let live = live.bind(customer).bind(project).bind(identifiers).persistent(false);
    let live = live.fetch_all(&mut **tx).await?;
    Ok(live.into_iter().map(|case| (case.identifier.clone(), case)).collect())
}

/// Adds test cases. Unavailable if somebody else has just added one with such an identifier: then
/// it is to be changed instead.
pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    cases: &[(TestCaseId, &TestCaseInput)],
) -> Result<(), Fault> {
    let done = sqlx::query(
        "insert into test_case (customer_id, project_id, id, identifier, name, description)
         select $1, $2, id, identifier, name, description
         from unnest($3::uuid[], $4::text[], $5::text[], $6::text[])
             as new (id, identifier, name, description)
         on conflict (customer_id, project_id, identifier) where live do nothing",
    )
    .bind(customer)
    .bind(project)
    .bind(cases.iter().map(|(id, _)| *id).collect::<Vec<_>>())
    .bind(cases.iter().map(|(_, case)| case.identifier.as_deref()).collect::<Vec<_>>())
    .bind(cases.iter().map(|(_, case)| case.name.as_str()).collect::<Vec<_>>())
    .bind(cases.iter().map(|(_, case)| case.description.as_str()).collect::<Vec<_>>())
    .execute(&mut **tx)
    .await?;
    if done.rows_affected() < cases.len() as u64 {
        return Err(Fault::Unavailable("a test case"));
    }
    Ok(())
}

/// Changes locked test cases.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    cases: &[(TestCaseId, &TestCaseInput)],
) -> Result<(), Fault> {
    sqlx::query(
        "update test_case
         set name = changed.name, description = changed.description, revision = revision + 1
         from unnest($2::uuid[], $3::text[], $4::text[]) as changed (id, name, description)
         where test_case.customer_id = $1 and test_case.id = changed.id",
    )
    .bind(customer)
    .bind(cases.iter().map(|(id, _)| *id).collect::<Vec<_>>())
    .bind(cases.iter().map(|(_, case)| case.name.as_str()).collect::<Vec<_>>())
    .bind(cases.iter().map(|(_, case)| case.description.as_str()).collect::<Vec<_>>())
    .execute(&mut **tx)
    .await?;
    Ok(())
}
