-- no-transaction
-- Retries that are due: in quiet hours, they are found among many deliveries that wait for the end.
create index concurrently if not exists webhook_delivery_retry_idx on webhook_delivery (webhook_id, next_attempt_at)
    where next_attempt_at is not null and last_attempt_at is not null
