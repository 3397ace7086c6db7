-- How long the results of projects are kept, as the catalog tells; for ever without a row.
create table retention (
    customer_id uuid not null,
    project_id uuid not null,
    days integer,
    -- That of the project when it told so.
    revision bigint not null,
    constraint retention_pkey primary key (customer_id, project_id)
);

-- What there is to do, of all customers: ended executions of a project by their age, …
create index execution_age_idx on execution (customer_id, project_id, completion_date_time)
    where expired_at is null and status in ('Completed', 'Canceled');
-- … those whose results are to be removed, …
create index execution_expired_idx on execution (id)
    where expired_at is not null and pruned_at is null;
-- … and those that keep a partition from being dropped.
create index execution_kept_idx on execution (id) where expired_at is null;

-- Drops a partition for good, as the owner of its table, whoever asks for it. Nobody waits long for
-- the lock that this takes: it fails where others use the table for longer.
create function drop_instance_partition(partition regclass) returns void language plpgsql
    security definer set search_path from current set lock_timeout = '200ms' as $$
declare
    owner regclass;
begin
    select inhparent into strict owner from pg_inherits
    where inhrelid = partition and inhparent in ('instance'::regclass, 'instance_detail'::regclass);
    execute format('alter table %s detach partition %s', owner, partition);
    execute format('drop table %s', partition);
end
$$;
