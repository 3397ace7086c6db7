-- Finished instances of test reports, by far the largest tables. Rows are never updated, and
-- inserted under the lock of their execution. They have no foreign key, because checking it costs
-- more than the row itself. Every key contains the id of the report, which increases with time. The
-- tables are partitioned by its month, so that expired instances are dropped with their partition
-- instead of row by row.
create table instance (
    customer_id uuid not null,
    test_report_id uuid not null,
    id uuid not null,
    instance_nr integer not null,
    start_date_time timestamptz,
    finish_date_time timestamptz,
    duration_in_sec double precision not null,
    result text not null,
    -- Statistics read only this index.
    constraint instance_pkey primary key (customer_id, test_report_id, instance_nr)
        include (duration_in_sec, result),
    constraint instance_id_key unique (customer_id, test_report_id, id),
    constraint instance_instance_nr_check check (instance_nr > 0),
    constraint instance_duration_in_sec_check check (duration_in_sec >= 0),
    constraint instance_result_check
        check (result in ('Passed', 'Failed', 'Error', 'Aborted', 'Canceled'))
) partition by range (test_report_id);

-- The columns that only the page of a single instance needs. Instances without them have no row.
create table instance_detail (
    customer_id uuid not null,
    test_report_id uuid not null,
    instance_nr integer not null,
    -- A JSON array that the service compresses with Zstandard. Empty without steps.
    steps bytea not null,
    artifacts_uri text not null,
    report_uri text not null,
    debug_log_uri text not null,
    execution_log_uri text not null,
    installation_log_uri text not null,
    constraint instance_detail_pkey primary key (customer_id, test_report_id, instance_nr)
) partition by range (test_report_id);

-- The steps are compressed already.
alter table instance_detail alter column steps set storage external;

-- Returns the smallest id of a time.
create function first_id_at(moment timestamptz) returns uuid language sql stable
    as $$ select rpad(lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0'), 32, '0')::uuid $$;

-- Creates the missing partitions of a month. They are created separately and then attached, so that
-- reads and writes continue meanwhile. Runs with the rights of the owner of the tables.
create function make_instance_partitions(month date) returns void language plpgsql
    security definer set search_path from current as $$
declare
    owner text;
    partition text;
    first_day timestamptz := month::timestamp at time zone 'utc';
    next_month timestamptz := (month + interval '1 month') at time zone 'utc';
begin
    perform pg_advisory_xact_lock(hashtextextended('assay instance partitions', 0));
    foreach owner in array array['instance', 'instance_detail'] loop
        partition := owner || to_char(month, '_YYYY_MM');
        continue when to_regclass(partition) is not null;
        execute format('create table %I (like %I including all)', partition, owner);
        execute format(
            'alter table %I attach partition %I for values from (%L) to (%L)',
            owner, partition, first_id_at(first_day), first_id_at(next_month)
        );
    end loop;
end
$$;

-- Instances from before the first month.
create table instance_before partition of instance
    for values from (minvalue) to (first_id_at(date_trunc('month', now(), 'utc')));
create table instance_detail_before partition of instance_detail
    for values from (minvalue) to (first_id_at(date_trunc('month', now(), 'utc')));

select make_instance_partitions((date_trunc('month', now() at time zone 'utc') + n * interval '1 month')::date)
from generate_series(0, 2) as n;
