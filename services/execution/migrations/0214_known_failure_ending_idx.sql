-- no-transaction
create index concurrently if not exists known_failure_ending_idx on known_failure (muted_until)
    where not is_expired and not is_announced
