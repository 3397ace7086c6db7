//! Positions of events in the stream of a customer.

use assay_proto::{CustomerId, Fault, NotificationId};
use sqlx::PgExecutor;

/// The id of an event before all others.
pub(super) const BEGINNING: &str = "0";

/// The last event that a client has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastEvent {
    /// The id of the event. An id that was received before the database was restored from a backup is
    /// unknown, even if there are as many notifications again.
    Id(NotificationId),
    /// The position, which was the id of the event in earlier releases. 0 stands for the beginning.
    Position(i64),
}

impl LastEvent {
    pub(super) fn parse(text: &str) -> Result<Self, Fault> {
        let number = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok());
        let id = || NotificationId::from_path(text).ok().map(Self::Id);
        let last = number.flatten().map(Self::Position).or_else(id);
        last.ok_or_else(|| Fault::invalid("lastEventId", "must be the id of a received event"))
    }
}

/// Returns the position of the last event of a client, or `None` if it is not known: the notification was
/// removed, or comes from a time that a restored database does not know.
pub(super) async fn after(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    last: LastEvent,
) -> Result<Option<i64>, Fault> {
    match last {
        LastEvent::Position(0) => Ok(Some(0)),
        LastEvent::Position(position) => {
            let known = sqlx::query_scalar(
                "select $2 between min(position) and max(position) from notification
                 where customer_id = $1 and deleted_at is null",
            );
            let known: Option<bool> = known.bind(customer).bind(position).fetch_one(db).await?;
            Ok(known.unwrap_or_default().then_some(position))
        }
        LastEvent::Id(id) => {
            let known = "select position from notification where customer_id = $1 and id = $2";
            Ok(sqlx::query_scalar(known).bind(customer).bind(id).fetch_optional(db).await?)
        }
    }
}

/// Returns the position and the id of the latest notification; 0 and none if there is none.
pub(super) async fn end(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
) -> Result<(i64, Option<NotificationId>), Fault> {
    let end = sqlx::query_as(
        "select position, id from notification
         where customer_id = $1 and deleted_at is null
         order by position desc limit 1",
    );
    let end: Option<(i64, NotificationId)> = end.bind(customer).fetch_optional(db).await?;
    Ok(end.map_or((0, None), |(position, id)| (position, Some(id))))
}

#[test]
fn a_last_event_is_an_id_or_a_number() {
    let id = NotificationId::new();
    assert_eq!(LastEvent::parse(&id.to_string()).ok(), Some(LastEvent::Id(id)));
    for (text, position) in [("0", 0), ("4711", 4711), ("9223372036854775807", i64::MAX)] {
        assert_eq!(LastEvent::parse(text).ok(), Some(LastEvent::Position(position)));
    }
    for wrong in ["", "x", "-1", "+1", "1.5", " 1", "1e3"] {
        assert!(LastEvent::parse(wrong).is_err(), "{wrong:?} was accepted");
    }
}
