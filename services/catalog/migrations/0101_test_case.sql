-- Test cases: what is tested.
create table test_case (
    customer_id uuid not null,
    id uuid not null,
    project_id uuid not null,
    identifier text not null,
    name text not null,
    description text not null,
    archived boolean not null default false,
    revision bigint not null default 1,
    created_at timestamptz not null default now(),
    deleted_at timestamptz,
    live boolean not null generated always as (not archived and deleted_at is null) stored,
    -- Of the plan with the highest revision.
    last_plan_status text,
    -- From the execution service; see test_report.
    last_report_status text,
    last_result text,
    last_sw_name text,
    last_sw_identifier text,
    execution_statistics jsonb not null default '[]',
    -- Suites, labels and links of the test, as the last report named them. Null if none did.
    suites text[],
    labels jsonb,
    links jsonb,
    -- The digest of these.
    classification_digest bigint,
    constraint test_case_pkey primary key (customer_id, id),
    constraint test_case_project_id_fkey
        foreign key (customer_id, project_id) references project,
    constraint test_case_last_plan_status_check
        check (last_plan_status in ('New', 'ReadyForExecution'))
)
-- Leaves room for the results of executions, which then need no new index entries.
with (fillfactor = 80);

create unique index test_case_identifier_key on test_case (customer_id, project_id, identifier)
    where live;

create index test_case_live_idx on test_case (customer_id, project_id, id) where live;
create index test_case_archive_idx on test_case (customer_id, project_id, id)
    where archived and deleted_at is null;
create index test_case_deleted_idx on test_case (customer_id, project_id, id)
    where deleted_at is not null;

-- Other identifiers under which test tools report test cases.
create table test_case_alias (
    customer_id uuid not null,
    project_id uuid not null,
    identifier text not null,
    test_case_id uuid not null,
    constraint test_case_alias_pkey primary key (customer_id, project_id, identifier),
    constraint test_case_alias_test_case_id_fkey
        foreign key (customer_id, test_case_id) references test_case on delete cascade
);

create index test_case_alias_test_case_idx on test_case_alias (customer_id, test_case_id);
