//! References of records to files, in PostgreSQL.
//!
//! A UUID in a field for a file is the id of a file. Any other text names a file of another system, as all
//! texts did before Assay stored files, and stays as it is. So does a UUID that was stored then, until it
//! changes.

use std::collections::HashMap;

use assay_proto::{CustomerId, Fault, FileId, ProjectId, Violation};
use sqlx::{FromRow, PgTransaction};
use uuid::Uuid;

/// A field of a record that may name a file.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    /// Name of the field in JSON.
    pub(crate) name: &'static str,
    pub(crate) text: Option<&'a str>,
    /// Text before the change; none for a new record.
    pub(crate) before: Option<&'a str>,
}

impl<'a> Field<'a> {
    pub(crate) fn new(name: &'static str, text: Option<&'a str>, before: Option<&'a str>) -> Self {
        Self { name, text, before }
    }

    /// Whether the field has another text than before.
    pub(crate) fn has_changed(&self) -> bool {
        self.text != self.before
    }

    /// Whether the field named a file before, and names none any more.
    pub(crate) fn is_cleared(&self) -> bool {
        self.text.unwrap_or_default().is_empty() && self.before.is_some_and(is_id)
    }
}

/// A file that a record refers to.
#[derive(FromRow)]
pub(crate) struct Referred {
    id: FileId,
    pub(crate) name: String,
    pub(crate) size: i64,
}

/// Whether a text is the id of a file.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == 36 && Uuid::try_parse(text).is_ok()
}

/// Records which files of a project, which the transaction has locked, a record refers to. Returns the files by
/// field. Fails for a changed field with the id of a file that the project does not have.
pub(crate) async fn set(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    (noun, record): (&'static str, Uuid),
    fields: &[Field<'_>],
) -> Result<HashMap<&'static str, Referred>, Fault> {
    let has_id = |field: &Field<'_>| [field.text, field.before].into_iter().flatten().any(is_id);
    if !fields.iter().any(has_id) {
        return Ok(HashMap::new());
    }
    let referred = find(tx, customer, project, fields).await?;
    if fields.iter().any(Field::has_changed) {
        delete(tx, customer, record).await?;
        insert(tx, customer, (noun, record), &referred).await?;
    }
    Ok(referred)
}

/// Finds the files that fields name, and locks them against deletion.
async fn find(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    fields: &[Field<'_>],
) -> Result<HashMap<&'static str, Referred>, Fault> {
    let ids: Vec<Uuid> = fields
        .iter()
        .filter_map(|field| field.text.filter(|text| is_id(text))?.parse().ok())
        .collect();
    let found: Vec<Referred> = sqlx::query_as(
        "select file.id, file.name, content.size from file
         join content on content.customer_id = file.customer_id and content.id = file.content_id
         where file.customer_id = $1 and file.project_id = $2 and file.id = any($3)
         for key share of file",
    )
    .bind(customer)
    .bind(project)
    .bind(ids)
    .fetch_all(&mut **tx)
    .await?;
    let (mut referred, mut missing) = (HashMap::new(), Vec::new());
    for field in fields {
        let Some(text) = field.text.filter(|text| is_id(text)) else { continue };
        match found.iter().find(|file| text.parse() == Ok(file.id.0)) {
            Some(Referred { id, name, size }) => {
                let file = Referred { id: *id, name: name.clone(), size: *size };
                referred.insert(field.name, file);
            }
            None if field.has_changed() => missing.push(Violation {
                field: field.name.to_owned(),
                problem: "no such file in the project: upload it first".to_owned(),
            }),
            None => {}
        }
    }
    if missing.is_empty() { Ok(referred) } else { Err(Fault::Invalid(missing)) }
}

async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    (noun, record): (&'static str, Uuid),
    referred: &HashMap<&'static str, Referred>,
) -> Result<(), Fault> {
    let (fields, files): (Vec<&str>, Vec<FileId>) =
        referred.iter().map(|(field, file)| (*field, file.id)).unzip();
    sqlx::query(
        "insert into file_reference (customer_id, file_id, noun, record_id, field)
         select $1, file_id, $2, $3, field from unnest($4::uuid[], $5::text[]) as new (file_id, field)",
    )
    .bind(customer)
    .bind(noun)
    .bind(record)
    .bind(files)
    .bind(fields)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Deletes the references of a record.
pub(crate) async fn delete(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    record: Uuid,
) -> Result<(), Fault> {
    sqlx::query("delete from file_reference where customer_id = $1 and record_id = $2")
        .bind(customer)
        .bind(record)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Gives a copy of a record the references of the original.
pub(crate) async fn copy(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    original: Uuid,
    copy: Uuid,
) -> Result<(), Fault> {
    sqlx::query(
        "insert into file_reference (customer_id, file_id, noun, record_id, field)
         select customer_id, file_id, noun, $3, field from file_reference
         where customer_id = $1 and record_id = $2",
    )
    .bind(customer)
    .bind(original)
    .bind(copy)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Fails if a record refers to a file of a project that the transaction has locked exclusively.
pub(super) async fn check_none(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    file: FileId,
) -> Result<(), Fault> {
    let first: Option<(String, Uuid, String, i64)> = sqlx::query_as(
        "select noun, record_id, field, count(*) over () - 1 from file_reference
         where customer_id = $1 and file_id = $2
         order by record_id, field
         limit 1",
    )
    .bind(customer)
    .bind(file)
    .fetch_optional(&mut **tx)
    .await?;
    let Some((noun, record, field, others)) = first else { return Ok(()) };
    let others = if others == 0 { String::new() } else { format!(" and {others} other fields") };
    let reason = format!(
        "{field} of the {noun} {record}{others} refer to the file: change or delete what refers to it first"
    );
    Err(Fault::Conflict { code: "file_in_use", reason })
}
