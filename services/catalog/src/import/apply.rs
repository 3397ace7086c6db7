//! Applies the rows of an import: finds out which test cases to create or change, and writes them. The
//! number of statements does not depend on the number of rows.

use std::collections::HashMap;

use assay_events::publish_all;
use assay_proto::{
    Changes, CustomerId, Fault, ProjectId, TestCaseId,
    catalog::{ImportAction, ImportedTestCase, TestCaseInput},
};
use assay_records::{Action, Check};
use sqlx::PgTransaction;

use super::{
    plans::{self, NewPlan},
    rows::Row,
    store::{self, Stored},
};
use crate::{
    event::EventSource,
    project,
    test_case::{
        identifiers, rules,
        store::{NewTestCase, insert_all},
    },
};

/// A row with the test case that it creates or changes.
struct Planned {
    id: TestCaseId,
    case: TestCaseInput,
    action: ImportAction,
}

impl Planned {
    fn new_test_case(&self) -> NewTestCase<'_> {
        NewTestCase {
            id: self.id,
            identifier: self.case.identifier.as_deref().unwrap_or_default(),
            name: &self.case.name,
            description: &self.case.description,
            classified: None,
        }
    }
}

/// Writes the rows and their events.
pub(super) async fn apply(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    rows: &[Row],
    plans: &[NewPlan],
) -> Result<Vec<ImportedTestCase>, Fault> {
    project::store::lock_for_many(tx, customer, project).await?;
    // PostgreSQL rejects NUL characters. Rows with them are refused below, with all other violations.
    let identifiers = rows.iter().filter_map(|row| identifier(&row.input));
    let identifiers: Vec<&str> = identifiers.filter(|text| !text.contains('\0')).collect();
    let stored = store::lock(tx, customer, project, &identifiers).await?;
    let mut planned = plan(rows, &stored)?;

    let (named, unnamed): (Vec<_>, Vec<_>) = planned
        .iter_mut()
        .filter(|row| row.action == ImportAction::Created)
        .partition(|row| row.case.identifier.is_some());
    let named = named.iter().map(|row| &**row).collect::<Vec<_>>();
    insert(tx, customer, project, &named).await?;
    // Only then, so that no row gets the identifier of another one.
    let mut free = identifiers::free(tx, customer, project, unnamed.len()).await?.into_iter();
    let unnamed: Vec<_> = unnamed
        .into_iter()
        .map(|row| {
            row.case.identifier = free.next();
            &*row
        })
        .collect();
    insert(tx, customer, project, &unnamed).await?;
    let changed = planned.iter().filter(|row| row.action == ImportAction::Changed);
    store::update(tx, customer, &changed.map(|row| (row.id, &row.case)).collect::<Vec<_>>())
        .await?;

    publish(tx, customer, project, &planned).await?;
    let cases: Vec<TestCaseId> = planned.iter().map(|row| row.id).collect();
    plans::add(tx, customer, project, &cases, plans).await?;
    Ok(imported(planned))
}

/// Plans the rows, given the test cases that exist. Fails with all violations at once.
fn plan(rows: &[Row], stored: &HashMap<String, Stored>) -> Result<Vec<Planned>, Fault> {
    let mut check = Check::default();
    let mut indexes = HashMap::new();
    let mut planned = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter().enumerate() {
        let identifier = identifier(&row.input);
        if let Some(before) = identifier.and_then(|identifier| indexes.insert(identifier, index)) {
            let problem = format!("must be unique; row {} has the same Identifier", before + 1);
            check.refuse(format!("{index}/Identifier"), problem);
        }
        let stored = identifier.and_then(|identifier| stored.get(identifier));
        let case = stored.map_or_else(TestCaseInput::default, Stored::input);
        match rules::valid(case.with(row.input.clone(), &row.fields)) {
            Ok(case) => {
                let action = match stored {
                    None => ImportAction::Created,
                    Some(stored) if stored.input() == case => ImportAction::Unchanged,
                    Some(_) => ImportAction::Changed,
                };
                let id = stored.map_or_else(TestCaseId::new, |stored| stored.id);
                planned.push(Planned { id, case, action });
            }
            Err(Fault::Invalid(violations)) => {
                for violation in violations {
                    check.refuse(format!("{index}/{}", violation.field), violation.problem);
                }
            }
            Err(fault) => return Err(fault),
        }
    }
    check.done().map(|()| planned)
}

/// Returns the identifier of a row. A blank one counts as absent.
fn identifier(input: &TestCaseInput) -> Option<&str> {
    input.identifier.as_deref().filter(|identifier| !identifier.trim().is_empty())
}

/// Adds the test cases of rows. Unavailable if another transaction has just added one with the same
/// identifier, which the next attempt changes instead.
async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    rows: &[&Planned],
) -> Result<(), Fault> {
    let cases: Vec<_> = rows.iter().map(|row| row.new_test_case()).collect();
    let inserted = insert_all(tx, customer, project, None, &cases).await?;
    if inserted.len() < cases.len() {
        return Err(Fault::Unavailable("a test case"));
    }
    Ok(())
}

async fn publish(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    planned: &[Planned],
) -> Result<(), Fault> {
    for (imported, action) in
        [(ImportAction::Created, Action::Created), (ImportAction::Changed, Action::Changed)]
    {
        let rows = planned.iter().filter(|row| row.action == imported);
        let cases: Vec<_> = rows.map(|row| EventSource::TestCase(project, row.id)).collect();
        publish_all(tx, EventSource::events(&cases, action, customer, project)).await?;
    }
    Ok(())
}

fn imported(planned: Vec<Planned>) -> Vec<ImportedTestCase> {
    let rows = (1..).zip(planned).map(|(row, Planned { id, case, action })| ImportedTestCase {
        row,
        id: id.to_string(),
        identifier: case.identifier.unwrap_or_default(),
        action: action.into(),
    });
    rows.collect()
}
