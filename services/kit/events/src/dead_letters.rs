//! Events that could not be applied, as dead letters.

use assay_work::{Queue, Work};

/// The events that consumers of a service have given up.
pub const EVENT: Work = Work {
    kind: "event",
    queue: Queue::Own {
        given_up: "select id::text, customer_id,
                       format('consumer %s, stream %s, sequence %s, event %s, subject %s',
                              consumer, stream, sequence,
                              case when record = '' then 'none' else event_id::text end,
                              subject) as about,
                       failures as attempts, reason, given_up_at
                   from inbox_parked where given_up_at is not null",
        retry: "update inbox_parked
                set given_up_at = null, failures = 0, taken = 0, parked_at = now(),
                    next_attempt_at = now()
                where given_up_at is not null and ($1::text[] is null or id::text = any($1))",
        drop: "delete from inbox_parked
               where given_up_at is not null and ($1::text[] is null or id::text = any($1))",
    },
};
