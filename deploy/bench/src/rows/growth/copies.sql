-- Copies the oldest execution of a test set with its reports. {set} is the id of the set, {copies} the
-- number of executions to come to, {instances} that of the instances of each report, and {since} the
-- time from which on the copies are spread. Their ids are those of their times, in this order, and
-- differ between test sets.
create or replace function pg_temp.id_of(moment timestamptz, number bigint) returns uuid
    language sql immutable as $$
    select (lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0')
        || '70008' || left(md5('{set}'), 5) || lpad(to_hex(number), 10, '0'))::uuid
$$;

create temp table original on commit drop as
select * from execution where test_set_id = '{set}' order by id limit 1;

create temp table report on commit drop as
select r.*, row_number() over (order by r.id) - 1 as position
from test_report r join original o on o.customer_id = r.customer_id and o.id = r.execution_id;

create temp table copy on commit drop as
select number, ({since}) + (number - before) * (now() - ({since})) / ({copies} - before) as moment
from (select count(*) as before from execution where test_set_id = '{set}') as executions,
    generate_series(before, {copies} - 1) as number;

create temp table copied_report on commit drop as
select c.number, c.moment, r.position, r.id as original_id, r.customer_id, r.test_case_id, r.result,
    pg_temp.id_of(c.moment, c.number) as execution_id,
    pg_temp.id_of(c.moment, c.number * 32768 + r.position) as id
from copy c cross join report r;

insert into execution
select copied.*
from copy cross join original
cross join lateral jsonb_populate_record(original, jsonb_build_object(
    'id', pg_temp.id_of(moment, number), 'request_time', moment, 'completion_date_time', moment,
    'idempotency_key', null, 'idempotent_request', null, 'key', null, 'rolled_up_at', moment
)) as copied;

insert into test_report
select copied.*
from copied_report c join report on report.position = c.position
cross join lateral jsonb_populate_record(null::test_report, to_jsonb(report) || jsonb_build_object(
    'id', c.id, 'execution_id', c.execution_id, 'execution_number', c.number + 1,
    'requested_instances_count', {instances}, 'finished_instances_count', {instances}
)) as copied;

insert into instance (customer_id, test_report_id, id, instance_nr, duration_in_sec, result)
select customer_id, id, pg_temp.id_of(moment, (number * 32768 + position) * 16 + instance_nr), instance_nr,
       (number * 7 + instance_nr * 13) % 100 / 10.0, result
from copied_report cross join generate_series(1, {instances}) as instance_nr;

insert into failure
select f.customer_id, c.id, f.instance_nr, f.project_id, c.execution_id, f.test_case_id, f.fingerprint,
       f.version, f.headline
from copied_report c
join failure f on f.customer_id = c.customer_id and f.test_report_id = c.original_id;

insert into case_day
select c.customer_id, o.project_id, c.test_case_id, (c.moment at time zone 'utc')::date,
       coalesce(o.branch, ''), count(*), count(*) filter (where c.result = 'Failed'), 0, 0, 0,
       sum(r.total_duration_in_sec), bool_or(slow.test_case_id is not null),
       (array_agg(c.execution_id order by c.number desc))[1], bool_or(c.result = 'Failed')
from copied_report c
join report r on r.position = c.position
cross join original o
left join (
    select distinct d.test_case_id
    from case_day d join original o on o.customer_id = d.customer_id and o.project_id = d.project_id
    where d.is_slow
) slow on slow.test_case_id = c.test_case_id
group by c.customer_id, o.project_id, c.test_case_id, (c.moment at time zone 'utc')::date, o.branch
on conflict do nothing;

update test_case_counter c set executions = {copies}
from report r where c.customer_id = r.customer_id and c.test_case_id = r.test_case_id;
