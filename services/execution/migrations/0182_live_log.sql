-- Live logs: the output of tests while engines run them, one for each lease. A task makes them artifacts
-- soon after the end of their lease, and removes them when those who follow them have read the end.
create table live_log (
    customer_id uuid not null,
    lease_id uuid not null,
    execution_id uuid not null,
    test_report_id uuid not null,
    -- The bytes of all its chunks.
    size bigint not null,
    begun_at timestamptz not null default now(),
    -- Since when it is an artifact; null before.
    sealed_at timestamptz,
    constraint live_log_pkey primary key (customer_id, lease_id)
);

create index live_log_report_idx on live_log (customer_id, test_report_id, lease_id);

create table live_log_chunk (
    customer_id uuid not null,
    lease_id uuid not null,
    -- The position of its first byte in the log.
    start bigint not null,
    content bytea not null,
    constraint live_log_chunk_pkey primary key (customer_id, lease_id, start)
);

-- Logs count as artifacts, which they become.
create function count_live_logs() returns trigger language plpgsql as $$
begin
    insert into usage
    select customer_id, 'artifacts',
           sum(octet_length(content)) * case when tg_op = 'INSERT' then 1 else -1 end
    from changed group by customer_id;
    return null;
end
$$;

create trigger live_log_chunk_inserted after insert on live_log_chunk
    referencing new table as changed for each statement execute function count_live_logs();
create trigger live_log_chunk_deleted after delete on live_log_chunk
    referencing old table as changed for each statement execute function count_live_logs();
