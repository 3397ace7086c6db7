-- Monitors: rules of a project that mute or skip test cases while they are flaky or slow.
create table monitor (
    customer_id uuid not null,
    id uuid not null,
    project_id uuid not null,
    name text not null,
    measure text not null,
    runs integer not null,
    threshold double precision not null,
    -- Empty: the default branch of the project.
    branch text not null,
    action text not null,
    recover_after integer not null,
    dry_run boolean not null,
    created_by_id uuid not null,
    created_by text not null,
    created_at timestamptz not null default now(),
    revision bigint not null default 1,
    constraint monitor_pkey primary key (customer_id, id),
    constraint monitor_measure_check
        check (measure in ('PassOnRetry', 'Recoveries', 'FailureRate', 'Duration')),
    constraint monitor_action_check check (action in ('Mute', 'Skip', 'Notify'))
);

create index monitor_project_idx on monitor (customer_id, project_id, id);

-- The test cases that have reached the threshold of a monitor, dry or not.
create table monitor_alarm (
    customer_id uuid not null,
    monitor_id uuid not null,
    test_case_id uuid not null,
    -- Until it recovers, or this time. Null after it has recovered.
    raised_until timestamptz,
    -- The execution with which it has recovered. The runs until then do not count any more.
    recovered_with_id uuid,
    changed_at timestamptz not null default now(),
    constraint monitor_alarm_pkey primary key (customer_id, monitor_id, test_case_id),
    constraint monitor_alarm_monitor_fkey foreign key (customer_id, monitor_id)
        references monitor (customer_id, id) on delete cascade
);

-- The actions of monitors in the last 90 days.
create table monitor_action (
    customer_id uuid not null,
    id uuid not null,
    monitor_id uuid not null,
    execution_id uuid not null,
    test_case_id uuid not null,
    test_case_identifier text not null,
    test_case_name text not null,
    action text not null,
    reason text not null,
    is_dry boolean not null,
    "time" timestamptz not null default now(),
    constraint monitor_action_pkey primary key (customer_id, monitor_id, id),
    constraint monitor_action_monitor_fkey foreign key (customer_id, monitor_id)
        references monitor (customer_id, id) on delete cascade
);

-- For the removal of old actions, over all customers.
create index monitor_action_age_idx on monitor_action using brin ("time");

-- The ended executions that the monitors of their projects have not evaluated yet.
create table monitor_evaluation (
    customer_id uuid not null,
    execution_id uuid not null,
    constraint monitor_evaluation_pkey primary key (customer_id, execution_id)
);

-- Whether the execution is of the default branch that its project had, or of no branch.
alter table execution add column is_of_default_branch boolean not null default false;

-- The monitor that has set the state. Null if a user has.
alter table test_case_state add column monitor_id uuid;
alter table test_case_state alter column changed_by_id drop not null;
