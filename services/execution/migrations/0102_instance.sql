-- Instances of test reports that have finished or were announced, by far the largest tables. Rows
-- are written under the lock of their execution, and updated only by the result of an announced
-- instance or of another attempt. They have no foreign key, because checking it costs
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
    -- `NotExecuted` as long as the instance is only announced.
    result text not null,
    -- The reporter, and the parameters of the test. In an open execution they identify the instance.
    reporter text not null default '',
    variant text not null default '',
    -- The number of the last attempt, whose outcome is that of the instance.
    attempt integer not null default 1,
    -- Statistics read only this index.
    constraint instance_pkey primary key (customer_id, test_report_id, instance_nr)
        include (duration_in_sec, result),
    constraint instance_id_key unique (customer_id, test_report_id, id),
    constraint instance_instance_nr_check check (instance_nr > 0),
    constraint instance_duration_in_sec_check check (duration_in_sec >= 0),
    constraint instance_result_check
        check (result in ('NotExecuted', 'Passed', 'Failed', 'Error', 'Aborted', 'Canceled')),
    constraint instance_attempt_check check (attempt > 0)
) partition by range (test_report_id);

-- The attempts of instances, with the columns that only the page of a single instance needs. A
-- last attempt without them has no row.
create table attempt (
    customer_id uuid not null,
    test_report_id uuid not null,
    instance_nr integer not null,
    attempt integer not null,
    -- The outcome of an earlier attempt. Null for the last one.
    start_date_time timestamptz,
    finish_date_time timestamptz,
    duration_in_sec double precision,
    result text,
    -- A JSON array that the service compresses with Zstandard. Empty without steps.
    steps bytea not null,
    artifacts_uri text not null,
    report_uri text not null,
    debug_log_uri text not null,
    execution_log_uri text not null,
    installation_log_uri text not null,
    constraint attempt_pkey primary key (customer_id, test_report_id, instance_nr, attempt),
    constraint attempt_result_check
        check (result in ('Passed', 'Failed', 'Error', 'Aborted', 'Canceled'))
) partition by range (test_report_id);

-- The steps are compressed already.
alter table attempt alter column steps set storage external;

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
    foreach owner in array array['instance', 'attempt'] loop
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
create table attempt_before partition of attempt
    for values from (minvalue) to (first_id_at(date_trunc('month', now(), 'utc')));

select make_instance_partitions((date_trunc('month', now() at time zone 'utc') + n * interval '1 month')::date)
from generate_series(0, 2) as n;
