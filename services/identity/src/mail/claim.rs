//! Claims of due mails. Customers take turns, so that many mails of one, or mails that the server
//! takes long to accept, do not delay those of others.

use std::{net::IpAddr, time::Duration};

use assay_proto::{CustomerId, Fault, UserId, events::ExecutionChanged};
use assay_work::Turns;
use sqlx::{AssertSqlSafe, PgExecutor, types::Json};
use uuid::Uuid;

use super::store::{Kind, MAIL, NO_CUSTOMER, OWNER};

/// Part of the concurrent mails that one customer, or one mailbox of password resets, may have; and
/// part that is reserved for password resets.
const SHARE: usize = 4;

/// Number of due mails that are considered of each customer.
const CONSIDERED: i64 = 64;

/// The order of kinds: links for new passwords come first, reports of executions last. As in the
/// index `mail_turn_idx`.
const RANK: &str = "case kind when 'PasswordReset' then 0 when 'ExecutionEnded' then 2 else 1 end";

/// A claimed mail.
pub(crate) struct Queued {
    pub(crate) id: Uuid,
    pub(crate) kind: Kind,
    /// Empty if the mail is for a user whose address is looked up when it is written.
    pub(crate) recipient: String,
    pub(crate) host: String,
    /// The name of the customer.
    pub(crate) customer: Option<String>,
    pub(crate) user: Option<(CustomerId, UserId)>,
    /// The customer whose mail it is, for its attempts.
    pub(crate) owner: CustomerId,
    /// Number of attempts, including this one.
    pub(crate) attempts: i32,
    pub(crate) execution: Option<EndedExecution>,
    address: Option<String>,
    pub(crate) turn: Turn,
}

/// The customer, or the mailbox of a password reset, whose turn a mail is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Turn {
    is_reset: bool,
    of: String,
}

/// An execution that has ended, and its requester.
pub(crate) struct EndedExecution {
    pub(crate) customer: CustomerId,
    pub(crate) requester: UserId,
    pub(crate) execution: ExecutionChanged,
}

impl Queued {
    /// Returns the address that has requested it.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.address.as_ref()?.parse().ok()
    }
}

/// Returns the number of mails that may begin beside the running ones, and how many of them may be
/// others than password resets. At most `most` mails are sent concurrently.
fn free(most: usize, running: &Turns<Turn>) -> Result<(i64, i64), Fault> {
    let number = |number: usize| i64::try_from(number).map_err(Fault::internal);
    let others = running.count(|turn| !turn.is_reset);
    let for_others = number(most - most / SHARE)?;
    Ok((number(most)? - running.count(|_| true), (for_others - others).max(0)))
}

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    kind: String,
    recipient: Option<String>,
    user_id: Option<UserId>,
    host: Option<String>,
    customer_id: Option<CustomerId>,
    customer: Option<String>,
    address: Option<String>,
    execution: Option<Json<ExecutionChanged>>,
    attempts: i32,
    turn_of: String,
}

/// Claims due mails, as many as may begin if at most `most` are sent concurrently. A claim expires after `validity`, which is longer than
/// sending a mail may take.
///
/// A recursive query finds the customers with one index lookup each, however many mails are waiting.
pub(crate) async fn claim(
    db: impl PgExecutor<'_>,
    most: usize,
    running: &Turns<Turn>,
    validity: Duration,
) -> Result<Vec<Queued>, Fault> {
    let (free, free_of_others) = free(most, running)?;
    if free == 0 {
        return Ok(Vec::new());
    }
    let (turns, counts): (Vec<&str>, Vec<i64>) =
        running.iter().map(|(turn, count)| (turn.of.as_str(), *count)).unzip();
    let is_due = MAIL.is_due(OWNER, "mail.id");
    let turn_of = "coalesce(customer_id::text, lower(recipient))";
    let rows: Vec<Row> = sqlx::query_as(AssertSqlSafe(format!(
        "with recursive owner (id) as (
             (select {OWNER} from mail order by 1 limit 1)
             union all
             select (select {OWNER} from mail where {OWNER} > owner.id order by 1 limit 1)
             from owner where owner.id is not null
         ), due as (
             select first.* from owner cross join lateral (
                 select id, {RANK} as rank, {turn_of} as turn_of, next_attempt_at from mail
                 where {OWNER} = owner.id and next_attempt_at <= now() and {is_due}
                 order by {RANK}, next_attempt_at limit {CONSIDERED}
             ) as first
         ), ready as (
             select id, rank, next_attempt_at, coalesce(count, 0) + row_number() over (
                        partition by turn_of order by rank, next_attempt_at) as turn
             from due left join unnest($1::text[], $2::bigint[]) as running (turn_of, count)
                 using (turn_of)
         ), next as (
             select id, rank, turn, next_attempt_at, row_number() over (
                        partition by rank = 0 order by rank, turn, next_attempt_at) as position
             from ready where turn <= $3
         )
         update mail set attempts = attempts + 1,
                         next_attempt_at = now() + make_interval(secs => $6)
         where id = any(array(
             select id from mail
             where next_attempt_at <= now() and id = any(array(
                 select id from next where rank = 0 or position <= $5
                 order by rank, turn, next_attempt_at limit $4
             ))
             for no key update skip locked
         ))
         returning id, kind, recipient, user_id, host, customer_id, attempts, address, execution,
                   {turn_of} as turn_of,
                   (select name from customer where customer.id = mail.customer_id) as customer"
    )))
    .bind(turns)
    .bind(counts)
    .bind(i64::try_from((most / SHARE).max(1)).map_err(Fault::internal)?)
    .bind(free)
    .bind(free_of_others)
    .bind(validity.as_secs_f64())
    .fetch_all(db)
    .await?;
    rows.into_iter().map(queued).collect()
}

fn queued(row: Row) -> Result<Queued, Fault> {
    let user = row.customer_id.zip(row.user_id);
    let execution = user.zip(row.execution).map(|((customer, requester), Json(execution))| {
        EndedExecution { customer, requester, execution }
    });
    let kind = Kind::parse(&row.kind)?;
    Ok(Queued {
        id: row.id,
        kind,
        recipient: row.recipient.unwrap_or_default(),
        host: row.host.unwrap_or_default(),
        customer: row.customer,
        user,
        owner: row.customer_id.unwrap_or(NO_CUSTOMER),
        attempts: row.attempts,
        execution,
        address: row.address,
        turn: Turn { is_reset: kind == Kind::PasswordReset, of: row.turn_of },
    })
}
