-- Test sets: test cases that are executed together.
create table test_set (
    customer_id uuid not null,
    id uuid not null,
    project_id uuid not null,
    name text not null,
    description text,
    selected_subject_id uuid,
    selected_environment_id uuid,
    priority text,
    tags text,
    stop_on_failure boolean not null,
    time_out double precision not null,
    -- Rules for the verdict of executions, in the JSON of the contract. The default is that of a new
    -- set.
    gate jsonb not null default '{"MaxNewFailures": 0, "AllowKnownFailures": true}',
    archived boolean not null default false,
    revision bigint not null default 1,
    created_at timestamptz not null default now(),
    deleted_at timestamptz,
    live boolean not null generated always as (not archived and deleted_at is null) stored,
    -- From the execution service, with the execution that they are of.
    last_executed timestamptz,
    last_subject_id uuid,
    last_sw_identifier text,
    last_sw_name text,
    last_execution_statistic jsonb,
    last_run_duration text not null default '00:00:00',
    last_execution_id uuid not null default '00000000-0000-0000-0000-000000000000',
    last_execution_revision bigint not null default 0,
    constraint test_set_pkey primary key (customer_id, id),
    constraint test_set_project_id_fkey foreign key (customer_id, project_id) references project,
    constraint test_set_selected_subject_id_fkey
        foreign key (customer_id, selected_subject_id) references subject,
    constraint test_set_selected_environment_id_fkey
        foreign key (customer_id, selected_environment_id) references environment
);

create index test_set_live_idx on test_set (customer_id, project_id, id) where live;
create index test_set_name_idx on test_set (customer_id, project_id, name) where live;
create index test_set_archive_idx on test_set (customer_id, project_id, id)
    where archived and deleted_at is null;
-- What refers to a subject or an environment, for its deletion.
create index test_set_selected_subject_idx on test_set (customer_id, selected_subject_id)
    where selected_subject_id is not null;
create index test_set_selected_environment_idx on test_set (customer_id, selected_environment_id)
    where selected_environment_id is not null;
create index test_set_deleted_idx on test_set (customer_id, project_id, id)
    where deleted_at is not null;

-- Which test cases a set includes, in the order of their positions. Archived cases stay members
-- that are not seen, until they are taken out of the archive; deleted ones are members no more. The
-- table has no foreign keys: checking them costs three times as much as the row itself. Transactions
-- that add members lock the project against deletions, then check the set and its new members.
create table test_set_case (
    customer_id uuid not null,
    test_set_id uuid not null,
    test_case_id uuid not null,
    position bigint not null,
    constraint test_set_case_pkey primary key (customer_id, test_set_id, test_case_id),
    constraint test_set_case_position_key unique (customer_id, test_set_id, position)
);

create index test_set_case_test_case_idx on test_set_case (customer_id, test_case_id, test_set_id);
