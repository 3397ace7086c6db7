-- Projects: what everything else in the catalog belongs to.
--
-- As in every table of the catalog, the customer comes first in every key, columns are named like
-- the fields of the contract, and a deleted record stays: `deleted_at` is set, also of what it
-- contained, and no statement sees it any more. What belongs to a deleted project is refused by the
-- project's `deleted_at` and removed in the background. Live is what is neither deleted nor in the archive;
-- as a column of its own, since PostgreSQL guesses well how many rows that leaves before it has
-- statistics, which it does not for `deleted_at is null`.
create table project (
    customer_id uuid not null,
    id uuid not null,
    name text not null,
    description text not null,
    report_template_id text,
    -- Days for which the execution service keeps results; null keeps them without limit.
    retention_in_days int,
    -- Branch that a branch without executions is compared with.
    default_branch text not null default 'main',
    archived boolean not null default false,
    revision bigint not null default 1,
    created_at timestamptz not null default now(),
    deleted_at timestamptz,
    -- When all that belonged to the deleted project was removed.
    purged_at timestamptz,
    live boolean not null generated always as (not archived and deleted_at is null) stored,
    -- Number in the last identifier generated for a test case.
    last_case_number bigint not null default 0,
    -- From the execution service, with the id of the execution or report: an older one that
    -- arrives later changes nothing.
    overall_result text,
    result_execution_id uuid not null default '00000000-0000-0000-0000-000000000000',
    result_revision bigint not null default 0,
    overall_status text,
    status_execution_id uuid not null default '00000000-0000-0000-0000-000000000000',
    status_finished_at timestamptz not null default '-infinity',
    status_report_id uuid not null default '00000000-0000-0000-0000-000000000000',
    status_revision bigint not null default 0,
    constraint project_pkey primary key (customer_id, id)
);

create index project_live_idx on project (customer_id, id) where live;
create index project_name_idx on project (customer_id, name) where live;
create index project_archive_idx on project (customer_id, id)
    where archived and deleted_at is null;
create index project_purge_idx on project (deleted_at)
    where deleted_at is not null and purged_at is null;
