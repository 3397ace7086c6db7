-- Failures: the instances whose last attempt failed, with a fingerprint that those of the same cause
-- have in common. They are removed with their instances, and have no foreign key either.
create table failure (
    customer_id uuid not null,
    test_report_id uuid not null,
    instance_nr integer not null,
    project_id uuid not null,
    execution_id uuid not null,
    test_case_id uuid not null,
    -- 128 bits. It is derived from the steps by rules of this version.
    fingerprint bytea not null,
    version smallint not null,
    -- The message in a few lines; empty if there is none.
    headline text not null,
    constraint failure_pkey primary key (customer_id, test_report_id, instance_nr)
);

-- The causes of an execution.
create index failure_execution_idx on failure (customer_id, execution_id, fingerprint);
-- The executions with a cause, in their order.
create index failure_cause_idx on failure (customer_id, project_id, fingerprint, execution_id);

-- The failures whose results have not expired. Statements that only read failures use it.
create view kept_failure as
select f.*
from failure f
join execution e on e.customer_id = f.customer_id and e.id = f.execution_id
where e.expired_at is null;

-- Known failures: causes that are muted in executions that are requested before a time.
create table known_failure (
    customer_id uuid not null,
    id uuid not null,
    project_id uuid not null,
    fingerprint bytea not null,
    -- Null: every test case.
    test_case_id uuid,
    headline text not null,
    ticket text not null,
    comment text not null,
    muted_until timestamptz not null,
    created_by_id uuid not null,
    created_by text not null,
    created_at timestamptz not null default now(),
    revision bigint not null default 1,
    constraint known_failure_pkey primary key (customer_id, id),
    constraint known_failure_cause_key
        unique nulls not distinct (customer_id, project_id, fingerprint, test_case_id)
);

create index known_failure_project_idx on known_failure (customer_id, project_id, id);
