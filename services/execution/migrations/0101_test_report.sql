-- Test reports: the outcome of one test case in one execution. The order of the ids within an
-- execution is that of its test set. They are inserted in the transaction of their execution or under
-- its lock, so they have no foreign key to it.
create table test_report (
    customer_id uuid not null,
    id uuid not null,
    execution_id uuid not null,
    test_case_id uuid not null,
    test_case_identifier text not null,
    test_case_name text not null,
    test_plan_id uuid not null,
    test_plan_revision integer not null,
    test_type text not null,
    minimum_duration_in_min double precision not null,
    variables jsonb,
    requested_instances_count integer not null,
    finished_instances_count integer not null,
    execution_number integer not null,
    result text not null,
    status text not null,
    -- Whether an instance passed after an attempt that did not.
    is_flaky boolean not null default false,
    -- The difference from the last result in the series of the execution.
    change text not null default 'None',
    -- Whether all its failures were known when they were reported.
    is_muted boolean not null default false,
    -- The ticket of the failures, of a known failure or of a review.
    ticket text not null default '',
    comment text,
    -- Suites, labels and links of the test, as its results name them. Null if they name none.
    suites text[],
    labels jsonb,
    links jsonb,
    start_date_time timestamptz,
    finish_date_time timestamptz,
    total_duration_in_sec double precision not null,
    average_duration_in_sec double precision not null,
    revision bigint not null default 1,
    constraint test_report_pkey primary key (customer_id, id),
    constraint test_report_test_case_key unique (customer_id, execution_id, test_case_id),
    constraint test_report_test_case_identifier_key
        unique (customer_id, execution_id, test_case_identifier),
    constraint test_report_execution_number_key
        unique (customer_id, test_case_id, execution_number),
    constraint test_report_test_type_check
        check (test_type in ('Default', 'Performance', 'Stability')),
    constraint test_report_result_check
        check (result in ('NotExecuted', 'Passed', 'Failed', 'Error', 'Aborted', 'Canceled')),
    constraint test_report_status_check check (
        status in ('NotExecuted', 'Running', 'InReview', 'Investigation', 'Accepted', 'Rejected',
            'EngineExecutionFailure', 'Canceled')
    ),
    constraint test_report_change_check
        check (change in ('None', 'New', 'Still', 'Fixed', 'Flaky')),
    constraint test_report_finished_instances_count_check
        check (finished_instances_count between 0 and requested_instances_count)
);

create index test_report_execution_idx on test_report (customer_id, execution_id, id);

-- The reports of an execution that need attention.
create index test_report_change_idx
    on test_report (customer_id, execution_id, change, test_case_id) where change <> 'None';

-- The number of executions of each test case. Rows are locked in the order of their ids.
create table test_case_counter (
    customer_id uuid not null,
    test_case_id uuid not null,
    executions integer not null,
    constraint test_case_counter_pkey primary key (customer_id, test_case_id)
);
