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
    /// The client has received none, and wants all.
    Beginning,
}

impl LastEvent {
    pub(super) fn parse(text: &str) -> Result<Self, Fault> {
        if text == BEGINNING {
            return Ok(Self::Beginning);
        }
        let problem = "must be the id of a received event, or 0 for all events";
        let id = NotificationId::from_path(text);
        id.map(Self::Id).map_err(|_| Fault::invalid("lastEventId", problem))
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
        LastEvent::Beginning => Ok(Some(0)),
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
fn a_last_event_is_an_id_or_the_beginning() {
    let id = NotificationId::new();
    assert_eq!(LastEvent::parse(&id.to_string()).ok(), Some(LastEvent::Id(id)));
    assert_eq!(LastEvent::parse("0").ok(), Some(LastEvent::Beginning));
    for wrong in ["", "x", "-1", "+1", "1", "00", "1.5", " 0", "1e3"] {
        assert!(LastEvent::parse(wrong).is_err(), "{wrong:?} was accepted");
    }
}
