-- Whether nearly everything failed in the execution because of the environment, apart from what was muted when its
-- results were added to the days of their test cases.
alter table execution add column is_outage boolean not null default false;

-- The view has the columns that the table had when the view was created.
create or replace view live_execution as
select * from execution e
where not (select exists (
    select from deletion d
    where d.customer_id = e.customer_id
      and d.project_id in (e.project_id, '00000000-0000-0000-0000-000000000000')
));
