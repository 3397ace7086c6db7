//! Deliveries: notifications that are sent to webhooks, and retried until the receiver accepts them.
//!
//! A delivery is written in the transaction of its notification, so none is lost. Deliveries are sent
//! in rounds: a round sends some of the due deliveries of one webhook, for as long as some of them
//! succeed. At any time, a webhook has at most one round, on whichever replica. A slow receiver
//! therefore delays only its own deliveries, and a receiver that is down gets few requests. Rounds are
//! claimed in turns of customers, as mails are ([`assay_work::InTurns`]).

pub(crate) mod attempt;
pub(crate) mod backoff;
pub(crate) mod due;
pub(crate) mod outcome;
pub(crate) mod results;
pub(crate) mod rounds;
mod schedule;
pub(crate) mod store;

use assay_work::{Queue, Work};

pub use self::rounds::age;

/// Deliveries that have failed for the last time. Their customer sees them too, and can have them sent
/// again.
pub(crate) const DELIVERY: Work = Work {
    kind: "delivery",
    queue: Queue::Own {
        given_up: "select d.webhook_id || '.' || d.notification_id as id, w.customer_id,
                       null as about, d.attempts, d.error as reason,
                       coalesce(d.last_attempt_at, w.created_at) as given_up_at
                   from webhook_delivery d join webhook w on w.id = d.webhook_id
                   where d.next_attempt_at is null and d.delivered_at is null
                     and w.deleted_at is null",
        retry: "update webhook_delivery d set attempts = 0, next_attempt_at = now()
                where next_attempt_at is null and delivered_at is null
                  and ($1::text[] is null or webhook_id || '.' || notification_id = any($1))",
        drop: "delete from webhook_delivery
               where next_attempt_at is null and delivered_at is null
                 and ($1::text[] is null or webhook_id || '.' || notification_id = any($1))",
    },
};
