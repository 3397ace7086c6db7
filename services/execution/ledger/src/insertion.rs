//! Statements that insert rows, in which each value stands beside the name of its column.

use std::fmt::Write as _;

use sqlx::{
    Arguments as _, AssertSqlSafe, Encode, Postgres, Type, postgres::PgArguments, query::Query,
};

/// An `insert` of one row, or of several rows that share some values.
///
/// Its text depends only on the columns that are set, so PostgreSQL prepares it once.
pub(crate) struct Insertion {
    table: &'static str,
    /// The columns that are set, and their values in the rows that are selected.
    columns: Vec<(&'static str, String)>,
    /// The columns of which each row has its own value, and the arrays of these values.
    arrays: Vec<(&'static str, String)>,
    arguments: PgArguments,
}

impl Insertion {
    /// Returns an insertion that sets no column yet.
    pub(crate) fn into(table: &'static str) -> Self {
        Self { table, columns: Vec::new(), arrays: Vec::new(), arguments: PgArguments::default() }
    }

    /// Binds a value, and returns its placeholder, for [`Self::set_to`].
    pub(crate) fn bind<'q, T: Encode<'q, Postgres> + Type<Postgres>>(
        &mut self,
        value: T,
    ) -> String {
        // No type that is stored fails to encode itself.
        self.arguments.add(value).expect("cannot encode a value");
        let mut placeholder = String::new();
        let _ = self.arguments.format_placeholder(&mut placeholder);
        placeholder
    }

    /// Sets a column of all rows.
    pub(crate) fn set<'q, T: Encode<'q, Postgres> + Type<Postgres>>(
        &mut self,
        column: &'static str,
        value: T,
    ) {
        let placeholder = self.bind(value);
        self.set_to(column, placeholder);
    }

    /// Sets a column of all rows to an id that is a text here.
    pub(crate) fn set_id<'q, T: Encode<'q, Postgres> + Type<Postgres>>(
        &mut self,
        column: &'static str,
        id: T,
    ) {
        let placeholder = self.bind(id);
        self.set_to(column, format!("{placeholder}::uuid"));
    }

    /// Sets a column of all rows to an SQL expression.
    pub(crate) fn set_to(&mut self, column: &'static str, expression: String) {
        self.columns.push((column, expression));
    }

    /// Sets a column of each row to its own value. `cast` is the type of the array, such as `int[]`, or a
    /// chain of casts, such as `text[]::uuid[]`.
    pub(crate) fn set_each<'q, T>(&mut self, column: &'static str, cast: &str, values: Vec<T>)
    where
        Vec<T>: Encode<'q, Postgres> + Type<Postgres>,
    {
        self.set_each_to(column, cast, values, column.to_owned());
    }

    /// Sets a column of each row to an expression of its own value, which has the name of the column.
    pub(crate) fn set_each_to<'q, T>(
        &mut self,
        column: &'static str,
        cast: &str,
        values: Vec<T>,
        expression: String,
    ) where
        Vec<T>: Encode<'q, Postgres> + Type<Postgres>,
    {
        let placeholder = self.bind(values);
        self.arrays.push((column, format!("{placeholder}::{cast}")));
        self.set_to(column, expression);
    }

    /// Returns the statement, with a clause behind it such as `returning id`.
    pub(crate) fn query(self, clause: &str) -> Query<'static, Postgres, PgArguments> {
        let list = |of: &mut dyn Iterator<Item = &str>| of.collect::<Vec<_>>().join(", ");
        let columns = list(&mut self.columns.iter().map(|(column, _)| *column));
        let values = list(&mut self.columns.iter().map(|(_, value)| value.as_str()));
        let mut sql = format!("insert into {} ({columns}) select {values}", self.table);
        if !self.arrays.is_empty() {
            let names = list(&mut self.arrays.iter().map(|(column, _)| *column));
            let arrays = list(&mut self.arrays.iter().map(|(_, array)| array.as_str()));
            let _ = write!(sql, " from unnest({arrays}) as row ({names})");
        }
        let _ = write!(sql, " {clause}");
        sqlx::query_with(AssertSqlSafe(sql), self.arguments)
    }
}
