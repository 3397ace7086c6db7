-- Drops a partition as before, unless an execution of its month has not expired. Transactions that add executions
-- of a past month hold the lock, so that one which was added since the partition was chosen is found.
create or replace function drop_instance_partition(partition regclass) returns void language plpgsql
    security definer set search_path from current set lock_timeout = '200ms' as $$
declare
    owner regclass;
    month timestamptz := to_date(right(partition::text, 7), 'YYYY_MM')::timestamp at time zone 'utc';
begin
    perform pg_advisory_xact_lock(hashtextextended('assay instance partitions', 0));
    if exists (
        select from execution
        where expired_at is null and id >= first_id_at(month - interval '1 day')
          and id < first_id_at(month + interval '1 month 1 day')
    ) then
        raise exception 'an execution of the month of % has not expired', partition
            using errcode = 'lock_not_available';
    end if;
    select inhparent into strict owner from pg_inherits
    where inhrelid = partition and inhparent in ('instance'::regclass, 'attempt'::regclass);
    execute format('alter table %s detach partition %s', owner, partition);
    execute format('drop table %s', partition);
end
$$;
