-- Executions: one row each, with everything that was copied when it started. The row is the lock of
-- all that belongs to the execution: whoever adds results, completes or cancels it locks the row
-- first, so that counts have one writer at a time.
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
    -- Sent by the client that started the execution, so that it starts once; and what was asked.
    idempotency_key text,
    idempotent_request bytea,
    tags text not null,
    mode text not null,
    stop_on_failure boolean not null,
    time_out double precision not null,
    -- When it is ended whatever has become of it.
    deadline timestamptz not null,
    status text not null,
    result text not null,
    completion_date_time timestamptz,
    archived boolean not null default false,
    -- How many reports there are, how many have not ended, and how the others have.
    test_cases_total integer not null,
    test_cases_pending integer not null,
    test_cases_canceled integer not null,
    test_cases_aborted integer not null,
    test_cases_with_error integer not null,
    test_cases_passed integer not null,
    test_cases_failed integer not null,
    -- When its tests ran, as far as their reporters said so.
    start_date_time timestamptz,
    finish_date_time timestamptz,
    total_duration_in_sec double precision not null,
    revision bigint not null default 1,
    -- Since when its results and artifacts are not kept any more, and when the last was removed.
    expired_at timestamptz,
    pruned_at timestamptz,
    constraint execution_pkey primary key (customer_id, id),
    constraint execution_idempotency_key_key
        unique (customer_id, request_user_id, idempotency_key),
    constraint execution_idempotent_request_check
        check ((idempotency_key is null) = (idempotent_request is null)),
    constraint execution_mode_check check (mode in ('Dispatch', 'External')),
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
-- Also of what is archived: history and statistics show all.
create index execution_test_set_idx on execution (customer_id, test_set_id, id);

-- Of all customers: the reconciler looks for what is overdue, and for what was not completed.
create index execution_deadline_idx on execution (deadline) where status in ('Queued', 'Running');
create index execution_done_idx on execution (id)
    where status in ('Queued', 'Running') and mode = 'Dispatch' and test_cases_pending = 0;
