-- The retention times of projects, from events of the catalog. Without a row, results are kept
-- forever.
create table retention (
    customer_id uuid not null,
    project_id uuid not null,
    days integer,
    -- The revision of the project in the event.
    revision bigint not null,
    constraint retention_pkey primary key (customer_id, project_id)
);

-- Ended executions of a project by age, to expire them.
create index execution_age_idx on execution (customer_id, project_id, completion_date_time)
    where expired_at is null and status in ('Completed', 'Canceled');
-- Expired executions whose results are to be removed, over all customers.
create index execution_expired_idx on execution (id)
    where expired_at is not null and pruned_at is null;
-- Executions that have not expired, which keep a partition from being dropped.
create index execution_kept_idx on execution (id) where expired_at is null;

-- Drops a partition with the rights of the owner of its table. Fails if it cannot lock the table
-- within 200 ms, so that others do not wait long either.
create function drop_instance_partition(partition regclass) returns void language plpgsql
    security definer set search_path from current set lock_timeout = '200ms' as $$
declare
    owner regclass;
begin
    select inhparent into strict owner from pg_inherits
    where inhrelid = partition and inhparent in ('instance'::regclass, 'attempt'::regclass);
    execute format('alter table %s detach partition %s', owner, partition);
    execute format('drop table %s', partition);
end
$$;
