alter table execution
    -- Whether a test case has failed that is not muted. The first one is published.
    add column has_failed boolean not null default false,
    -- Whether it was published that no engine has begun the work for some time.
    add column has_waited boolean not null default false;

create or replace view live_execution as
select * from execution e
where not (select exists (
    select from deletion d
    where d.customer_id = e.customer_id
      and d.project_id in (e.project_id, '00000000-0000-0000-0000-000000000000')
));

-- Whether it was published that the mute ends soon.
alter table known_failure add column is_announced boolean not null default false;
alter table test_case_state add column is_announced boolean not null default false;
