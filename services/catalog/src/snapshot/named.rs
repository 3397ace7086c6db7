//! Test sets that clients know by name.

use assay_auth::Caller;
use assay_database::begin;
use assay_proto::{
    CustomerId, Fault, Permission, ProjectId, TestSetId,
    catalog::{FindTestSetRequest, ProjectInput, SnapshotTarget, TestSetInput},
};
use sqlx::{PgPool, PgTransaction};
use uuid::Uuid;

use crate::{project, test_set};

/// Returns the project and the test set with these names or ids. Creates those that are missing if
/// the caller may write.
pub(super) async fn find(
    db: &PgPool,
    caller: &Caller,
    request: FindTestSetRequest,
) -> Result<SnapshotTarget, Fault> {
    let FindTestSetRequest { project, test_set, subject, environment } = request;
    let customer = caller.customer;
    let mut tx = begin(db).await?;
    let mut found = find_project(&mut tx, customer, &project).await?;
    if found.is_none() && caller.may(Permission::Write) {
        // Another transaction may have created it meanwhile.
        lock_names(&mut tx, customer).await?;
        found = find_project(&mut tx, customer, &project).await?;
        if found.is_none() {
            let input = ProjectInput { name: project.clone(), ..ProjectInput::default() };
            let created = project::create(&mut tx, customer, input).await?;
            found = Some(ProjectId::from_record(&created.id)?);
        }
    }
    let project = found.ok_or_else(|| missing("Project", "project", &project))?;
    let mut found = find_test_set(&mut tx, customer, project, &test_set).await?;
    if found.is_none() && caller.may(Permission::Write) {
        lock_names(&mut tx, customer).await?;
        found = find_test_set(&mut tx, customer, project, &test_set).await?;
        if found.is_none() {
            let input = TestSetInput { name: test_set.clone(), ..TestSetInput::default() };
            let created = test_set::create(&mut tx, customer, project, input).await?;
            found = Some(TestSetId::from_record(&created.id)?);
        }
    }
    let test_set = found.ok_or_else(|| missing("TestSet", "test set", &test_set))?;
    let subject_id = match subject {
        Some(identifier) => only(&mut tx, SUBJECT, customer, project, &identifier).await?,
        None => None,
    };
    let environment_id = match environment {
        Some(name) => only(&mut tx, ENVIRONMENT, customer, project, &name).await?,
        None => None,
    };
    tx.commit().await?;
    Ok(SnapshotTarget {
        project_id: project.to_string(),
        test_set_id: test_set.to_string(),
        subject_id,
        environment_id,
    })
}

const SUBJECT: &str = "select id::text from subject
     where customer_id = $1 and project_id = $2 and identifier = $3 and live limit 2";
const ENVIRONMENT: &str = "select id::text from environment
     where customer_id = $1 and project_id = $2 and name = $3 and live limit 2";

/// Returns the only record of a project that a statement selects by its name.
async fn only(
    tx: &mut PgTransaction<'_>,
    statement: &'static str,
    customer: CustomerId,
    project: ProjectId,
    name: &str,
) -> Result<Option<String>, Fault> {
    let found = sqlx::query_scalar(statement).bind(customer).bind(project).bind(name);
    let mut found: Vec<String> = found.fetch_all(&mut **tx).await?;
    let only = found.pop();
    Ok(only.filter(|_| found.is_empty()))
}

/// Locks the names of the projects and test sets of a customer, so that each is created once.
async fn lock_names(tx: &mut PgTransaction<'_>, customer: CustomerId) -> Result<(), Fault> {
    let lock =
        sqlx::query("select pg_advisory_xact_lock(hashtextextended('names ' || $1::text, 0))");
    lock.bind(customer).execute(&mut **tx).await?;
    Ok(())
}

async fn find_project(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    name: &str,
) -> Result<Option<ProjectId>, Fault> {
    let found = sqlx::query_scalar(
        "(select id from project where customer_id = $1 and id = $3 and live)
         union all
         (select id from project where customer_id = $1 and name = $2 and live limit 2)",
    );
    let found = found.bind(customer).bind(name).bind(Uuid::parse_str(name).ok());
    only_one("Project", "projects", name, found.fetch_all(&mut **tx).await?)
}

async fn find_test_set(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    name: &str,
) -> Result<Option<TestSetId>, Fault> {
    let found = sqlx::query_scalar(
        "(select id from test_set
          where customer_id = $1 and project_id = $2 and id = $4 and live)
         union all
         (select id from test_set
          where customer_id = $1 and project_id = $2 and name = $3 and live
          limit 2)",
    );
    let found = found.bind(customer).bind(project).bind(name).bind(Uuid::parse_str(name).ok());
    only_one("TestSet", "test sets", name, found.fetch_all(&mut **tx).await?)
}

/// Returns the only record with a name, which is unique only if its users take care.
fn only_one<I>(
    field: &str,
    nouns: &str,
    name: &str,
    mut found: Vec<I>,
) -> Result<Option<I>, Fault> {
    if found.len() > 1 {
        let problem = format!("must be an id, as several {nouns} have the name {name:?}");
        return Err(Fault::invalid(field, problem));
    }
    Ok(found.pop())
}

fn missing(field: &str, noun: &str, name: &str) -> Fault {
    let problem = format!(
        "must be the name or id of a {noun}, as creating {name:?} requires the permission Write"
    );
    Fault::invalid(field, problem)
}
