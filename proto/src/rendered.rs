//! Records that are rendered as JSON while their rows arrive, without a message in between.

use std::marker::PhantomData;

use serde::{Serialize, de::DeserializeOwned};
use sqlx::{
    Column, Decode, FromRow, Postgres, Row, Type,
    postgres::{PgColumn, PgRow},
    types::Json,
};

use crate::{Fault, Listed, RowOf};

/// A message that can be rendered from the columns that it is read from.
pub trait Columned {
    /// Writes each field, and sets the cursor of the row.
    fn write(row: &mut JsonRow<'_>) -> sqlx::Result<()>;
}

/// The JSON of a record.
pub struct Rendered<T> {
    json: Vec<u8>,
    cursor: String,
    record: PhantomData<fn() -> T>,
}

impl<'r, T: Columned> FromRow<'r, PgRow> for Rendered<T> {
    fn from_row(row: &'r PgRow) -> sqlx::Result<Self> {
        let json = Vec::with_capacity(ROW_SIZE);
        let mut row = JsonRow { row, next: 0, json, cursor: String::new() };
        T::write(&mut row)?;
        row.json.push(b'}');
        Ok(Self { json: row.json, cursor: row.cursor, record: PhantomData })
    }
}

impl<T> Listed for Rendered<T> {
    fn cursor(&self) -> &str {
        &self.cursor
    }

    fn size(&self) -> usize {
        self.json.len()
    }
}

impl<T> RowOf<T> for Rendered<T> {
    fn render(&self, text: &mut Vec<u8>) -> Result<(), Fault> {
        text.extend_from_slice(&self.json);
        Ok(())
    }
}

/// Size in bytes of the JSON of most rows.
const ROW_SIZE: usize = 512;

/// A row whose columns are written as the members of a JSON object. `member` is the text before a
/// value, such as `,"Name":`. The types are those of the contract, so columns are not checked for them.
pub struct JsonRow<'r> {
    row: &'r PgRow,
    /// Index of the column after the last one that was written. It is mostly the next one.
    next: usize,
    json: Vec<u8>,
    cursor: String,
}

impl<'r> JsonRow<'r> {
    /// Sets the cursor from the column that is written next.
    pub fn cursor<T>(&mut self, column: &'static str) -> sqlx::Result<()>
    where
        T: Decode<'r, Postgres> + Type<Postgres> + Into<String>,
    {
        let index = self.index(column)?;
        self.next = index;
        self.cursor = self.row.try_get_unchecked::<T, _>(index)?.into();
        Ok(())
    }

    /// Writes a value, or null.
    pub fn value<T>(&mut self, member: &str, column: &'static str) -> sqlx::Result<()>
    where
        T: Decode<'r, Postgres> + Type<Postgres> + Serialize,
    {
        let index = self.index(column)?;
        self.member(member, &self.row.try_get_unchecked::<Option<T>, _>(index)?)
    }

    /// Writes a text, which is empty if it is absent.
    pub fn blank(&mut self, member: &str, column: &'static str) -> sqlx::Result<()> {
        let index = self.index(column)?;
        let text = self.row.try_get_unchecked::<Option<&str>, _>(index)?;
        self.member(member, &text.unwrap_or_default())
    }

    /// Writes messages from JSON. Absent ones are the default.
    pub fn json<T>(&mut self, member: &str, column: &'static str) -> sqlx::Result<()>
    where
        T: DeserializeOwned + Default + Serialize + 'static,
    {
        let value = match self.index(column) {
            Ok(index) => self.row.try_get_unchecked::<Option<Json<T>>, _>(index)?,
            Err(sqlx::Error::ColumnNotFound(_)) => None,
            Err(error) => return Err(error),
        };
        self.member(member, &value.map(|Json(value)| value).unwrap_or_default())
    }

    fn member(&mut self, member: &str, value: &impl Serialize) -> sqlx::Result<()> {
        self.json.extend_from_slice(member.as_bytes());
        serde_json::to_writer(&mut self.json, value)
            .map_err(|error| sqlx::Error::Encode(error.into()))
    }

    fn index(&mut self, column: &'static str) -> sqlx::Result<usize> {
        let is_next = |next: &PgColumn| next.name() == column;
        let index = match self.row.columns().get(self.next) {
            Some(next) if is_next(next) => self.next,
            _ => self.row.try_column(column)?.ordinal(),
        };
        self.next = index + 1;
        Ok(index)
    }
}
