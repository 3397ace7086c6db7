-- The execution with which a test case has reached the threshold of a monitor: it recovers in the same test set and
-- environment. Null for alarms that were raised before this migration.
alter table monitor_alarm add column raised_by_id uuid;

-- The series of the executions that an incident affects, as it is compared: without an environment the nil UUID, without
-- a branch an empty text.
alter table incident_execution
    add column environment_id uuid not null default '00000000-0000-0000-0000-000000000000',
    add column branch text not null default '';
update incident_execution a
set environment_id = coalesce(e.environment_id, a.environment_id), branch = coalesce(e.branch, '')
from execution e
where e.customer_id = a.customer_id and e.id = a.execution_id;

-- The latest execution of a series that an incident affects.
create index incident_execution_series_idx on incident_execution
    (customer_id, incident_id, test_set_id, environment_id, branch, execution_id);
