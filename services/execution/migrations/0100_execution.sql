-- Executions, with copies of the catalog's records from when they started. A row is also the lock
-- of everything that belongs to the execution: transactions that add results, complete or cancel
-- the execution lock it first, so that the counts have one writer at a time.
create table execution (
    customer_id uuid not null,
    id uuid not null,
    project_id uuid not null,
    test_set_id uuid not null,
    test_set_name text not null,
    software_version_id uuid,
    software_version text,
    software_name text,
    environment_id uuid,
    environment_name text,
    request_user_id uuid not null,
    request_user text not null,
    request_time timestamptz not null default now(),
    -- The idempotency key of the request that started the execution, and the request itself.
    idempotency_key text,
    idempotent_request bytea,
    tags text not null,
    -- Notes on its reports for their readers.
    notes text[] not null default '{}',
    -- The origin of the tested software, and the run of the CI system.
    branch text,
    commit text,
    build text,
    ci_url text,
    mode text not null,
    stop_on_failure boolean not null,
    time_out double precision not null,
    -- An open execution adopts test cases as their results arrive. Its reporters find it by the key,
    -- if it has one. It ends when this number of reporters have completed, or the grace period
    -- after the last result.
    is_open boolean not null,
    key text,
    reporters integer,
    grace_in_sec integer,
    -- The time at which the reconciler ends the execution, and the latest such time.
    deadline timestamptz not null,
    last_deadline timestamptz not null,
    status text not null,
    result text not null,
    completion_date_time timestamptz,
    archived boolean not null default false,
    -- The number of reports: all, the pending ones, and the ended ones by result.
    test_cases_total integer not null,
    test_cases_pending integer not null,
    test_cases_canceled integer not null,
    test_cases_aborted integer not null,
    test_cases_with_error integer not null,
    test_cases_passed integer not null,
    test_cases_failed integer not null,
    -- The first start and the last finish of its instances, as far as they were reported.
    start_date_time timestamptz,
    finish_date_time timestamptz,
    total_duration_in_sec double precision not null,
    -- Up to ten executions that its results are compared with, the latest first: those of its series
    -- that had ended when it was requested.
    baseline uuid[] not null,
    -- The rules for its verdict, of the test set.
    gate jsonb not null,
    revision bigint not null default 1,
    -- The time at which its results and artifacts expired, and the time at which they were removed.
    expired_at timestamptz,
    pruned_at timestamptz,
    -- The time at which its results were added to those of the days of their test cases.
    rolled_up_at timestamptz,
    constraint execution_pkey primary key (customer_id, id),
    constraint execution_idempotency_key_key
        unique (customer_id, request_user_id, idempotency_key),
    constraint execution_idempotent_request_check
        check ((idempotency_key is null) = (idempotent_request is null)),
    constraint execution_mode_check check (mode in ('Dispatch', 'External')),
    constraint execution_is_open_check
        check (mode = 'External' or not is_open),
    constraint execution_grace_in_sec_check check (is_open = (grace_in_sec is not null)),
    constraint execution_status_check
        check (status in ('Queued', 'Running', 'Completed', 'Canceled')),
    constraint execution_result_check
        check (result in ('NotExecuted', 'Passed', 'Failed', 'Error', 'Aborted', 'Canceled')),
    constraint execution_test_cases_check check (
        test_cases_total = test_cases_pending + test_cases_canceled + test_cases_aborted
            + test_cases_with_error + test_cases_passed + test_cases_failed
        and least(test_cases_pending, test_cases_canceled, test_cases_aborted,
            test_cases_with_error, test_cases_passed, test_cases_failed) >= 0
    )
);

create index execution_project_idx on execution (customer_id, project_id, id)
    where not archived;
create index execution_archive_idx on execution (customer_id, project_id, id)
    where archived;
-- Includes archived executions: history and statistics show all.
create index execution_test_set_idx on execution (customer_id, test_set_id, id);

-- For lists that are filtered by a field.
create index execution_result_idx on execution (customer_id, project_id, result, id);
create index execution_status_idx on execution (customer_id, project_id, status, id);
create index execution_branch_idx on execution (customer_id, project_id, branch, id)
    where branch is not null;
create index execution_environment_idx on execution (customer_id, project_id, environment_id, id)
    where environment_id is not null;
create index execution_subject_idx
    on execution (customer_id, project_id, software_version_id, id)
    where software_version_id is not null;
create index execution_request_user_idx
    on execution (customer_id, project_id, request_user_id, id);

-- The ended executions of a series.
create index execution_series_idx
    on execution (customer_id, test_set_id, coalesce(environment_id, '00000000-0000-0000-0000-000000000000'),
        coalesce(branch, ''), id)
    where status in ('Completed', 'Canceled');

create unique index execution_key on execution (customer_id, test_set_id, key)
    where key is not null;

-- For the reconciler, over all customers: overdue executions, and those without pending reports
-- that were not completed.
create index execution_deadline_idx on execution (deadline) where status in ('Queued', 'Running');
create index execution_done_idx on execution (id)
    where status in ('Queued', 'Running') and mode = 'Dispatch' and test_cases_pending = 0;

-- The tags of executions, for lists that are filtered by one.
create table execution_tag (
    customer_id uuid not null,
    project_id uuid not null,
    tag text not null,
    execution_id uuid not null,
    constraint execution_tag_pkey primary key (customer_id, project_id, tag, execution_id),
    constraint execution_tag_execution_fkey
        foreign key (customer_id, execution_id) references execution (customer_id, id)
);

create index execution_tag_execution_idx on execution_tag (customer_id, execution_id);

-- The clients that report to an open execution: shards, processes or jobs.
create table reporter (
    customer_id uuid not null,
    execution_id uuid not null,
    name text not null,
    completed_at timestamptz,
    constraint reporter_pkey primary key (customer_id, execution_id, name),
    constraint reporter_execution_fkey
        foreign key (customer_id, execution_id) references execution (customer_id, id)
);

-- The reports that were uploaded to an open execution, so that sending one again has no effect.
create table upload (
    customer_id uuid not null,
    execution_id uuid not null,
    digest bytea not null,
    constraint upload_pkey primary key (customer_id, execution_id, digest),
    constraint upload_execution_fkey
        foreign key (customer_id, execution_id) references execution (customer_id, id)
);
