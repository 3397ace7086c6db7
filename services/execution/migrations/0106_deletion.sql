-- Deleted projects and customers, from events of their services. Their executions are hidden from
-- then on, and their rows and files are removed in the background.
create table deletion (
    customer_id uuid not null,
    -- The nil UUID if the customer itself was deleted, with all its projects.
    project_id uuid not null,
    deleted_at timestamptz not null default now(),
    -- The time at which the last row and file was removed.
    purged_at timestamptz,
    constraint deletion_pkey primary key (customer_id, project_id)
);

-- For the purge, over all customers: unfinished deletions.
create index deletion_purge_idx on deletion (customer_id, project_id) where purged_at is null;

-- The executions that are not deleted. All statements except those of the purge and the retention
-- read and lock executions here.
--
-- The subquery in the select list is not turned into a join. PostgreSQL estimates that such a join
-- leaves hardly any execution, and would read all of them to show the latest ones.
create view live_execution as
select * from execution e
where not (select exists (
    select from deletion d
    where d.customer_id = e.customer_id
      and d.project_id in (e.project_id, '00000000-0000-0000-0000-000000000000')
));
