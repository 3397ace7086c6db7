-- Test plans: how a test case is executed, in numbered revisions.
create table test_plan (
    customer_id uuid not null,
    id uuid not null,
    test_case_id uuid not null,
    revision int not null,
    -- Grows with every change of this plan; `revision` counts the plans of the case.
    version bigint not null default 1,
    created_at timestamptz not null default now(),
    deleted_at timestamptz,
    -- When the plan was first executed; since then it is part of history.
    frozen_at timestamptz,
    status text not null,
    test_type text not null,
    instances int not null,
    minimum_duration_in_min double precision not null,
    description text,
    monitoring_message text,
    input_file_id text,
    supporting_files_id text,
    automation_supporting_files_id text,
    automated_test_container_id text,
    -- The contents of secured ones are encrypted.
    variables jsonb not null default '[]',
    automation_steps jsonb not null default '[]',
    constraint test_plan_pkey primary key (customer_id, id),
    constraint test_plan_revision_key unique (customer_id, test_case_id, revision),
    constraint test_plan_test_case_id_fkey
        foreign key (customer_id, test_case_id) references test_case,
    constraint test_plan_status_check check (status in ('New', 'ReadyForExecution')),
    constraint test_plan_test_type_check
        check (test_type in ('Default', 'Performance', 'Stability'))
);

-- Test reports from the events of the execution service, for the figures of plans and cases. Events
-- arrive in any order, also after the case was deleted.
create table test_report (
    customer_id uuid not null,
    id uuid not null,
    test_case_id uuid not null,
    test_plan_id uuid not null,
    execution_number int not null,
    result text not null,
    status text not null,
    start_date_time timestamptz,
    finish_date_time timestamptz,
    average_duration_in_sec double precision not null,
    software_name text,
    software_identifier text,
    revision bigint not null,
    constraint test_report_pkey primary key (customer_id, id)
);

create index test_report_test_case_idx
    on test_report (customer_id, test_case_id, execution_number);
create index test_report_test_plan_idx
    on test_report (customer_id, test_plan_id, execution_number);
