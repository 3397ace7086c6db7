//! The columns that `…Input` messages are written to.

use serde_json::Value;
use sqlx::{Postgres, postgres::PgArguments, query::QueryAs};

use crate::Choice;

/// A query that the fields of an input are bound to.
pub type InputQuery<'q, O> = QueryAs<'q, Postgres, O, PgArguments>;

/// An `…Input` message that is written to columns.
///
/// The statement stays in the store, which binds its own parameters first:
///
/// ```ignore
/// let (columns, values) = (ProjectInput::COLUMNS, ProjectInput::values(3));
/// let insert = format!("insert into project (customer_id, id, {columns}) values ($1, $2, {values})");
/// project.bind(sqlx::query_as(AssertSqlSafe(insert)).bind(customer).bind(id))
/// ```
pub trait InputColumns {
    /// The names of the columns, separated by commas.
    const COLUMNS: &'static str;

    /// The name of each column, and the cast of its parameter.
    const PARAMETERS: &'static [(&'static str, &'static str)];

    /// Binds the fields in the order of the columns.
    fn bind<'q, O>(&'q self, query: InputQuery<'q, O>) -> InputQuery<'q, O>;

    /// Returns the parameters as `insert` lists them: `$3, $4::uuid`. `first` is the number of the
    /// first one.
    fn values(first: usize) -> String {
        list(first, Self::PARAMETERS, |number, _, cast| format!("${number}{cast}"))
    }

    /// Returns the assignments of an `update`: `name = $3, parent_id = $4::uuid`. `first` is the
    /// number of the first parameter.
    fn assignments(first: usize) -> String {
        list(first, Self::PARAMETERS, |number, name, cast| format!("{name} = ${number}{cast}"))
    }
}

/// An `…Input` message of which many are written by one statement. Its fields have one value each.
///
/// ```ignore
/// let (columns, arrays) = (TestCaseInput::COLUMNS, TestCaseInput::arrays(2));
/// let insert = format!(
///     "insert into test_case (customer_id, {columns})
///      select $1, {columns} from unnest({arrays}) as input ({columns})"
/// );
/// TestCaseInput::bind_all(&cases, sqlx::query_as(AssertSqlSafe(insert)).bind(customer))
/// ```
pub trait InputArrays: InputColumns {
    /// The type of each column.
    const TYPES: &'static [&'static str];

    /// Binds an array for each column, with the fields of the inputs in their order.
    fn bind_all<'q, O>(inputs: &[&'q Self], query: InputQuery<'q, O>) -> InputQuery<'q, O>;

    /// Returns the arrays as `unnest` takes them: `$3::text[], $4::uuid[]`. `first` is the number of
    /// the first parameter.
    fn arrays(first: usize) -> String {
        let arrays = (first..).zip(Self::TYPES).map(|(number, of)| format!("${number}::{of}[]"));
        arrays.collect::<Vec<_>>().join(", ")
    }

    /// Returns the names of the columns of the arrays in an `update`: `new_name, new_parent_id`.
    fn new_columns() -> String {
        list(0, Self::PARAMETERS, |_, name, _| format!("new_{name}"))
    }

    /// Returns the assignments of an `update` from the arrays: `name = new_name`.
    fn new_assignments() -> String {
        list(0, Self::PARAMETERS, |_, name, _| format!("{name} = new_{name}"))
    }
}

fn list(
    first: usize,
    parameters: &[(&str, &str)],
    part: impl Fn(usize, &str, &str) -> String,
) -> String {
    let parts: Vec<String> =
        (first..).zip(parameters).map(|(number, (name, cast))| part(number, name, cast)).collect();
    parts.join(", ")
}

/// Returns the name of an enum value, or null for one that is not set.
pub(crate) fn name<E: Choice>(number: i32) -> Option<String> {
    match serde_json::to_value(E::try_from(number).ok()?) {
        Ok(Value::String(name)) => Some(name),
        _ => None,
    }
}
