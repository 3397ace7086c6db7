-- Copies the only execution of a test set with its reports, with ten instances for each report.
-- {set} is the id of the set, {copies} the number of copies. Their ids are those of the last days, in
-- the order of the copies.
create or replace function pg_temp.id_of(moment timestamptz, number bigint) returns uuid
    language sql immutable as $$
    select (lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0')
        || '70008' || lpad(to_hex(number), 15, '0'))::uuid
$$;

create temp table original on commit drop as
select * from execution where test_set_id = '{set}';

create temp table report on commit drop as
select r.*, row_number() over (order by r.id) - 1 as position
from test_report r join original o on o.customer_id = r.customer_id and o.id = r.execution_id;

create temp table copy on commit drop as
select number, date_trunc('month', now()) + number * (now() - date_trunc('month', now())) / {copies}
    as moment
from generate_series(1, {copies} - 1) as number;

insert into execution
select copied.*
from copy cross join original
cross join lateral jsonb_populate_record(original, jsonb_build_object(
    'id', pg_temp.id_of(moment, number), 'request_time', moment, 'completion_date_time', moment
)) as copied;

insert into test_report
select copied.*
from copy cross join report
cross join lateral jsonb_populate_record(null::test_report, to_jsonb(report) || jsonb_build_object(
    'id', pg_temp.id_of(moment, number * 16 + position),
    'execution_id', pg_temp.id_of(moment, number), 'execution_number', number + 1,
    'requested_instances_count', 10, 'finished_instances_count', 10
)) as copied;

insert into instance (customer_id, test_report_id, id, instance_nr, duration_in_sec, result)
select customer_id, pg_temp.id_of(moment, number * 16 + position),
       pg_temp.id_of(moment, (number * 16 + position) * 16 + instance_nr), instance_nr,
       (number * 7 + instance_nr * 13) % 100 / 10.0, 'Passed'
from copy cross join report cross join generate_series(1, 10) as instance_nr;

update test_case_counter c set executions = {copies}
from report r where c.customer_id = r.customer_id and c.test_case_id = r.test_case_id;
