-- Whether the execution is of a launch that was merged into another one. Its results are those of the other execution,
-- so that histories, grids and backtests leave it out.
alter table execution add column is_merged boolean not null default false;

-- The view has the columns that the table had when the view was created.
create or replace view live_execution as
select * from execution e
where not (select exists (
    select from deletion d
    where d.customer_id = e.customer_id
      and d.project_id in (e.project_id, '00000000-0000-0000-0000-000000000000')
));
