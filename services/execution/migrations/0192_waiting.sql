-- no-transaction
create index concurrently if not exists execution_waiting_idx on execution (request_time)
    where status = 'Queued' and not has_waited
