-- no-transaction
create index concurrently if not exists execution_untimed_idx on execution (id)
    where status in ('Completed', 'Canceled') and timed_at is null
