//! What an import makes of its rows: which test cases it creates, which it changes, and how. A few
//! statements, however many the rows are.

use std::collections::HashMap;

use assay_events::publish_all;
use assay_proto::{
    Changes, CustomerId, Fault, ProjectId, TestCaseId,
    catalog::{ImportAction, ImportedTestCase, TestCaseInput},
};
use assay_records::{Action, Check};
use sqlx::PgTransaction;

use super::{
    rows::Row,
    store::{self, Stored},
};
use crate::{
    record::Record,
    test_case::{identifiers, rules},
};

/// What is to become of a row.
struct Planned {
    id: TestCaseId,
    case: TestCaseInput,
    action: ImportAction,
}

/// Applies the rows within the transaction, and tells others.
pub(super) async fn apply(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    rows: &[Row],
) -> Result<Vec<ImportedTestCase>, Fault> {
    identifiers::claim(tx, customer, project).await?;
    // PostgreSQL takes no NUL characters; rows that have some are refused with all that is wrong.
    let identifiers = rows.iter().filter_map(|row| identifier(&row.input));
    let identifiers: Vec<&str> = identifiers.filter(|text| !text.contains('\0')).collect();
    let stored = store::lock(tx, customer, project, &identifiers).await?;
    let mut planned = plan(rows, &stored)?;

    let (named, unnamed): (Vec<_>, Vec<_>) = planned
        .iter_mut()
        .filter(|row| row.action == ImportAction::Created)
        .partition(|row| row.case.identifier.is_some());
    let named = named.iter().map(|row| (row.id, &row.case)).collect::<Vec<_>>();
    store::insert(tx, customer, project, &named).await?;
    // After the others, so that none gets an identifier that a row has.
    let mut free = identifiers::free(tx, customer, project, unnamed.len()).await?.into_iter();
    let unnamed: Vec<_> = unnamed
        .into_iter()
        .map(|row| {
            row.case.identifier = free.next();
            (row.id, &row.case)
        })
        .collect();
    store::insert(tx, customer, project, &unnamed).await?;
    let changed = planned.iter().filter(|row| row.action == ImportAction::Changed);
    store::update(tx, customer, &changed.map(|row| (row.id, &row.case)).collect::<Vec<_>>())
        .await?;

    tell(tx, customer, project, &planned).await?;
    Ok(told(planned))
}

/// What is to become of the rows, given those of the test cases that are there already. All that is
/// wrong is told at once.
fn plan(rows: &[Row], stored: &HashMap<String, Stored>) -> Result<Vec<Planned>, Fault> {
    let mut check = Check::default();
    let mut places = HashMap::new();
    let mut planned = Vec::with_capacity(rows.len());
    for (place, row) in rows.iter().enumerate() {
        let identifier = identifier(&row.input);
        if let Some(before) = identifier.and_then(|identifier| places.insert(identifier, place)) {
            let problem = format!("is the identifier of row {} too", before + 1);
            check.refuse(format!("{place}/Identifier"), problem);
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
                    check.refuse(format!("{place}/{}", violation.field), violation.problem);
                }
            }
            Err(fault) => return Err(fault),
        }
    }
    check.done().map(|()| planned)
}

/// A blank identifier is none.
fn identifier(input: &TestCaseInput) -> Option<&str> {
    input.identifier.as_deref().filter(|identifier| !identifier.trim().is_empty())
}

async fn tell(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    planned: &[Planned],
) -> Result<(), Fault> {
    let mut events = Vec::with_capacity(planned.len());
    for row in planned {
        let action = match row.action {
            ImportAction::Created => Action::Created,
            ImportAction::Changed => Action::Changed,
            ImportAction::Unchanged | ImportAction::Unspecified => continue,
        };
        events.push(Record::TestCase(project, row.id).was(action, customer)?);
    }
    publish_all(tx, &events).await
}

fn told(planned: Vec<Planned>) -> Vec<ImportedTestCase> {
    let rows = (1..).zip(planned).map(|(row, Planned { id, case, action })| ImportedTestCase {
        row,
        id: id.to_string(),
        identifier: case.identifier.unwrap_or_default(),
        action: action.into(),
    });
    rows.collect()
}
