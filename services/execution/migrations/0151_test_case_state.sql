-- The states of test cases that are not `Enabled`. A row is in force until its end, and is deleted after it.
create table test_case_state (
    customer_id uuid not null,
    project_id uuid not null,
    test_case_id uuid not null,
    -- As they were when the state was set, for a test case without results.
    test_case_identifier text not null,
    test_case_name text not null,
    state text not null,
    until timestamptz not null,
    ticket text not null,
    reason text not null,
    owner text not null,
    changed_by_id uuid not null,
    changed_by text not null,
    changed_at timestamptz not null default now(),
    revision bigint not null default 1,
    constraint test_case_state_pkey primary key (customer_id, project_id, test_case_id),
    constraint test_case_state_state_check check (state in ('Muted', 'Skipped'))
);

-- For the publication of ends, over all customers.
create index test_case_state_until_idx on test_case_state (until);

comment on column failure.is_known is
    'Whether the failure was muted when it was reported or reviewed: its cause was known, or its test case
     was muted. A report whose failures are all muted is muted.';
