-- Finished instances of test reports: what grows. Rows are only ever added, under the lock of their
-- execution; there is no foreign key, because checking one costs more than the row. Every key holds
-- the report's id, which grows with time: the tables can become partitions by ranges of it, so that
-- retention drops partitions instead of deleting rows.
create table instance (
    customer_id uuid not null,
    test_report_id uuid not null,
    id uuid not null,
    instance_nr integer not null,
    start_date_time timestamptz,
    finish_date_time timestamptz,
    duration_in_sec double precision not null,
    result text not null,
    -- Statistics are read from this index alone.
    constraint instance_pkey primary key (customer_id, test_report_id, instance_nr)
        include (duration_in_sec, result),
    constraint instance_id_key unique (customer_id, test_report_id, id),
    constraint instance_instance_nr_check check (instance_nr > 0),
    constraint instance_duration_in_sec_check check (duration_in_sec >= 0),
    constraint instance_result_check
        check (result in ('Passed', 'Failed', 'Error', 'Aborted', 'Canceled'))
);

-- What only a look at a single instance needs; no row where there is nothing to look at.
create table instance_detail (
    customer_id uuid not null,
    test_report_id uuid not null,
    instance_nr integer not null,
    -- A JSON array, compressed with Zstandard by the service; empty for no steps.
    steps bytea not null,
    artifacts_uri text not null,
    report_uri text not null,
    debug_log_uri text not null,
    execution_log_uri text not null,
    installation_log_uri text not null,
    constraint instance_detail_pkey primary key (customer_id, test_report_id, instance_nr)
);

-- Compressing twice only takes time.
alter table instance_detail alter column steps set storage external;
