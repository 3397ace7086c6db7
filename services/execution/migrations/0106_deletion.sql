-- Projects and customers that were deleted, as their services publish it. Their executions are not
-- found from then on; the rows and files themselves are removed in the background.
create table deletion (
    customer_id uuid not null,
    -- The nil UUID: the customer itself, with all its projects.
    project_id uuid not null,
    deleted_at timestamptz not null default now(),
    -- When the last of its rows and files was removed.
    purged_at timestamptz,
    constraint deletion_pkey primary key (customer_id, project_id)
);

-- Of all customers: what is still to be removed.
create index deletion_purge_idx on deletion (customer_id, project_id) where purged_at is null;

-- The executions that callers, engines and background work may find. Everything but the removal
-- itself reads and locks executions here.
create view live_execution as
select * from execution e
where not exists (
        select from deletion d where d.customer_id = e.customer_id and d.project_id = e.project_id
    )
    and not exists (
        select from deletion d
        where d.customer_id = e.customer_id
          and d.project_id = '00000000-0000-0000-0000-000000000000'
    );
