-- no-transaction
-- The last id of a customer, also if that notification was deleted.
create index concurrently if not exists notification_deleted_id_idx on notification (customer_id, id)
    where deleted_at is not null
