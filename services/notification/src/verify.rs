//! The users and groups of the notifications, for the comparison with the identity service.

use assay_events::KnownMember;
use assay_proto::Fault;
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use sqlx::PgPool;

/// Returns the users and groups whose creation or deletion was notified, of all customers, in one pass through the
/// notifications. Users who were created before those that are kept have none.
pub fn members(db: &PgPool) -> BoxStream<'_, Result<KnownMember, Fault>> {
    let members = sqlx::query_as(
        "select customer_id, case source when 'User' then 'user' else 'user group' end as noun,
                source_id::uuid as id, is_deleted
         from (
             select customer_id, source, source_id, bool_or(action = 'Deleted') as is_deleted
             from notification n
             where origin = 'Assay' and source in ('User', 'UserGroup')
               and action in ('Created', 'Deleted')
               and not exists (
                   select from deleted_customer d where d.customer_id = n.customer_id
               )
             group by customer_id, source, source_id
         ) as member",
    );
    members.fetch(db).map_err(Fault::from).boxed()
}
