-- Numbers of reporters that did not complete in time, and of test cases that were not run after a failure because of
-- `StopOnFailure`, although the execution has ended. Unless they are 0, its verdict fails.
alter table execution
    add column missing_reporters integer not null default 0,
    add column stopped_test_cases integer not null default 0;

-- The view has the columns that the table had when the view was created.
create or replace view live_execution as
select * from execution e
where not (select exists (
    select from deletion d
    where d.customer_id = e.customer_id
      and d.project_id in (e.project_id, '00000000-0000-0000-0000-000000000000')
));
