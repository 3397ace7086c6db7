-- The results of each test case, day and branch, of ended executions. Rankings of the test cases of
-- a project read them instead of millions of reports.
create table case_day (
    customer_id uuid not null,
    project_id uuid not null,
    test_case_id uuid not null,
    -- Of the request of the executions, in UTC.
    day date not null,
    -- Empty for executions without one.
    branch text not null,
    -- The number of executions: all with a result, those that failed, that failed although they had
    -- not before, that passed after a failed attempt, and that passed although they had not before.
    runs integer not null,
    failures integer not null,
    new_failures integer not null,
    flaky_runs integer not null,
    recoveries integer not null,
    duration_in_sec double precision not null,
    -- Whether the test case was among the slowest ones of an execution.
    is_slow boolean not null,
    last_execution_id uuid not null,
    last_failed boolean not null,
    constraint case_day_pkey primary key (customer_id, project_id, test_case_id, day, branch)
)
-- Leaves room for the results of further executions, most of which need no new index entries.
with (fillfactor = 80);

-- The test cases that need attention, by the reasons why they do.
create index case_day_failed_idx on case_day (customer_id, project_id, day)
    include (branch, test_case_id, failures, new_failures) where failures > 0;
create index case_day_flaky_idx on case_day (customer_id, project_id, day)
    include (branch, test_case_id, flaky_runs, recoveries) where flaky_runs > 0 or recoveries > 0;
create index case_day_slow_idx on case_day (customer_id, project_id, day)
    include (branch, test_case_id) where is_slow;
-- For the removal of old days, over all customers.
create index case_day_age_idx on case_day using brin (day);

-- The ended executions whose results are not in `case_day` yet, over all customers.
create index execution_rollup_idx on execution (id)
    where status in ('Completed', 'Canceled') and rolled_up_at is null;
