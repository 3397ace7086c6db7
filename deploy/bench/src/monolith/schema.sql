-- The tables of the baseline. They have the columns that Assay stores for a test case and a result,
-- and the indexes that the measured requests need.
create table project (
    customer_id uuid not null,
    id uuid not null,
    name text not null,
    constraint project_pkey primary key (customer_id, id)
);

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
    last_plan_status text,
    last_report_status text,
    last_result text,
    last_sw_name text,
    last_sw_identifier text,
    execution_statistics jsonb not null default '[]',
    suites text[],
    labels jsonb,
    links jsonb,
    constraint test_case_pkey primary key (customer_id, id),
    constraint test_case_project_id_fkey foreign key (customer_id, project_id) references project
);
create unique index test_case_identifier_key on test_case (customer_id, project_id, identifier)
    where not archived and deleted_at is null;
create index test_case_list_idx on test_case (customer_id, project_id, id)
    where not archived and deleted_at is null;

create table test_plan (
    customer_id uuid not null,
    id uuid not null,
    test_case_id uuid not null,
    revision int not null,
    version bigint not null default 1,
    created_at timestamptz not null default now(),
    deleted_at timestamptz,
    status text not null,
    test_type text not null,
    instances int not null,
    minimum_duration_in_min double precision not null,
    description text,
    monitoring_message text,
    variables jsonb not null default '[]',
    automation_steps jsonb not null default '[]',
    constraint test_plan_pkey primary key (customer_id, id),
    constraint test_plan_revision_key unique (customer_id, test_case_id, revision),
    constraint test_plan_test_case_id_fkey
        foreign key (customer_id, test_case_id) references test_case
);

create table outbox (
    id bigint generated always as identity primary key,
    event_id uuid not null,
    customer_id uuid not null,
    record text not null,
    noun text not null,
    action text not null,
    data json not null,
    trace jsonb not null,
    created_at timestamptz not null default now(),
    published_at timestamptz
);

create table instance (
    customer_id uuid not null,
    test_report_id uuid not null,
    id uuid not null,
    instance_nr integer not null,
    start_date_time timestamptz,
    finish_date_time timestamptz,
    duration_in_sec double precision not null,
    result text not null,
    constraint instance_pkey primary key (customer_id, test_report_id, instance_nr)
        include (duration_in_sec, result),
    constraint instance_id_key unique (customer_id, test_report_id, id)
);

create table instance_detail (
    customer_id uuid not null,
    test_report_id uuid not null,
    instance_nr integer not null,
    steps jsonb not null,
    constraint instance_detail_pkey primary key (customer_id, test_report_id, instance_nr)
);
