-- The execution times of ended executions: what they add to the sum of a month. A row stays when the results of its
-- execution expire, and when the execution is removed with its project, so that the sums of past months do not
-- change. The rows of a deleted customer are removed with it.
create table execution_time (
    customer_id uuid not null,
    execution_id uuid not null,
    project_id uuid not null,
    test_set_id uuid not null,
    -- Of the engines that ran it. Empty if it needed none, or its results were reported from elsewhere.
    target_group text not null,
    -- The first day of the month, in UTC, in which it ended.
    month date not null,
    instances bigint not null,
    duration_in_sec double precision not null,
    constraint execution_time_pkey primary key (customer_id, execution_id),
    constraint execution_time_month_check check (extract(day from month) = 1),
    constraint execution_time_instances_check check (instances > 0),
    constraint execution_time_duration_in_sec_check check (duration_in_sec >= 0)
);

create index execution_time_month_idx
    on execution_time (customer_id, month, project_id, test_set_id, target_group)
    include (instances, duration_in_sec);

-- The time at which the execution time was stored; `infinity` if it does not count.
alter table execution add column timed_at timestamptz;

-- The view has the columns that the table had when the view was created.
create or replace view live_execution as
select * from execution e
where not (select exists (
    select from deletion d
    where d.customer_id = e.customer_id
      and d.project_id in (e.project_id, '00000000-0000-0000-0000-000000000000')
));
