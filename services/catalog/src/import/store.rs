//! The test cases of imports in PostgreSQL.

use std::collections::HashMap;

use assay_proto::{CustomerId, Fault, ProjectId, TestCaseId, catalog::TestCaseInput};
use sqlx::{FromRow, PgTransaction};

/// A test case as it is stored.
#[derive(FromRow)]
pub(super) struct Stored {
    pub(super) id: TestCaseId,
    identifier: String,
    name: String,
    description: String,
}

impl Stored {
    /// Returns the fields that a client writes.
    pub(super) fn input(&self) -> TestCaseInput {
        TestCaseInput {
            name: self.name.clone(),
            description: self.description.clone(),
            identifier: Some(self.identifier.clone()),
            ..TestCaseInput::default()
        }
    }
}

/// Locks the active test cases with these identifiers, in the order of their ids, so that transactions
/// do not deadlock.
///
/// The statement is not prepared, so that PostgreSQL plans it for the given identifiers: it hashes them
/// or looks up each of them. The plan of a prepared statement fits any number of identifiers, and may
/// compare each test case of a large project with all of them.
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
