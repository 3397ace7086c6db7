//! Which records of a kind a list shows a user: active ones, those in the archive, favorites, or
//! what the user has opened last.

use assay_auth::Caller;
use assay_proto::{
    CustomerId, Fault, Listed, UserId,
    catalog::{RecordKind, Shelf as Name},
    name_of,
};
use assay_runtime::list::{Rows, Slice};
use futures::{Stream, TryStreamExt};
use uuid::Uuid;

/// How many records are recent.
const RECENT: i64 = 20;

/// Some of a customer's records of a kind, as SQL in which `$1` is the customer and `$2` the user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shelf {
    pub(crate) customer: CustomerId,
    pub(crate) user: UserId,
    kind: RecordKind,
    name: Name,
}

impl Shelf {
    pub(crate) fn of(caller: &Caller, kind: RecordKind, name: Name) -> Self {
        Self { customer: caller.customer, user: caller.user, kind, name }
    }

    /// The condition that its rows fulfil. In the words of the partial indexes where those are to be
    /// used; and in others for what a user has marked, which is found by its ids even before there
    /// are statistics.
    pub(crate) fn condition(self) -> String {
        let marked = |table: &str| {
            let kind = name_of(self.kind);
            format!(
                "not archived and deleted_at is null and id = any(array(
                     select record_id from {table}
                     where customer_id = $1 and user_id = $2 and kind = '{kind}'
                 ))"
            )
        };
        match self.name {
            // Every statement takes the user, so that all can be bound alike.
            Name::Unspecified => "live and $2::uuid is not null".to_owned(),
            Name::Archive => "archived and deleted_at is null and $2::uuid is not null".to_owned(),
            Name::Favorites => marked("favorite"),
            Name::Recent => marked("opening"),
        }
    }

    /// What its rows are ordered by.
    pub(crate) fn order(self) -> String {
        match self.name {
            Name::Unspecified | Name::Archive | Name::Favorites => "id desc".to_owned(),
            Name::Recent => {
                let kind = name_of(self.kind);
                format!(
                    "(
                        select opened_at from opening
                        where customer_id = $1 and user_id = $2 and kind = '{kind}'
                          and record_id = id
                    ) desc"
                )
            }
        }
    }

    /// Before which id the rows come that are to be read for a slice.
    pub(crate) fn before(self, slice: &Slice) -> Result<Uuid, Fault> {
        match self.name {
            Name::Unspecified | Name::Archive | Name::Favorites => slice.before(),
            Name::Recent => Ok(Uuid::max()),
        }
    }

    /// How many rows are to be read for a slice.
    pub(crate) fn limit(self, slice: &Slice) -> i64 {
        match self.name {
            Name::Unspecified | Name::Archive | Name::Favorites => slice.limit,
            Name::Recent => RECENT,
        }
    }

    /// Reads a slice of the rows. Recent ones are few and read as a whole, since their order is not
    /// that of their ids.
    pub(crate) async fn read<T: Listed>(
        self,
        rows: impl Stream<Item = Result<T, sqlx::Error>>,
        slice: &Slice,
    ) -> Result<Rows<T>, Fault> {
        if self.name != Name::Recent {
            return slice.read(rows).await;
        }
        let mut rows: Vec<T> = rows.try_collect().await?;
        if let Some(cursor) = &slice.after {
            let place = rows.iter().position(|row| row.cursor() == cursor);
            let place = place.ok_or_else(|| Fault::invalid("cursor", "is not in the list"))?;
            rows.drain(..=place);
        }
        rows.truncate(usize::try_from(slice.limit).unwrap_or_default());
        Ok(rows.into())
    }
}
