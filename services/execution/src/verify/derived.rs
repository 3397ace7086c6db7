//! The state that is derived from results, as statements.

/// Derives reports from their instances. Expired executions are excluded: they have no instances
/// left. The result of a report that ended without all its instances may be worse than theirs.
pub(super) const REPORTS: &str = "
    select r.customer_id, r.id,
           i.finished_instances_count, i.total_duration_in_sec,
           coalesce(i.total_duration_in_sec / nullif(i.finished_instances_count, 0), 0)
               as average_duration_in_sec,
           i.start_date_time, i.finish_date_time,
           case when r.status not in ('NotExecuted', 'Running')
                     and i.finished_instances_count < r.requested_instances_count
                then severity[greatest(i.worst, array_position(severity, r.result))]
                else severity[i.worst] end as result
    from unnest($1::uuid[], $2::uuid[]) as sought (customer_id, id)
    join execution e on e.customer_id = sought.customer_id and e.id = sought.id
    join test_report r on r.customer_id = e.customer_id and r.execution_id = e.id
    cross join (
        select array['NotExecuted', 'Passed', 'Canceled', 'Aborted', 'Failed', 'Error'] as severity
    ) as s
    cross join lateral (
        select count(*)::int as finished_instances_count,
               coalesce(sum(duration_in_sec), 0) as total_duration_in_sec,
               min(start_date_time) as start_date_time, max(finish_date_time) as finish_date_time,
               coalesce(max(array_position(severity, result)), 1) as worst
        from instance
        where customer_id = r.customer_id and test_report_id = r.id and result <> 'NotExecuted'
    ) as i
    where e.expired_at is null";

/// Derives executions from their reports.
pub(super) const EXECUTIONS: &str = "
    select sought.customer_id, sought.id, r.*,
           case when r.worst = 'Canceled' and r.test_cases_passed > 0 then 'Passed'
                else r.worst end as result
    from unnest($1::uuid[], $2::uuid[]) as sought (customer_id, id)
    cross join lateral (
        select count(*)::int as test_cases_total,
               (count(*) filter (where pending))::int as test_cases_pending,
               (count(*) filter (where not pending and result = 'Canceled'))::int
                   as test_cases_canceled,
               (count(*) filter (where not pending and result = 'Aborted'))::int
                   as test_cases_aborted,
               (count(*) filter (where not pending and result = 'Error'))::int
                   as test_cases_with_error,
               (count(*) filter (where not pending and result = 'Passed'))::int
                   as test_cases_passed,
               (count(*) filter (where not pending and result = 'Failed'))::int
                   as test_cases_failed,
               coalesce(sum(total_duration_in_sec), 0) as total_duration_in_sec,
               min(start_date_time) as start_date_time, max(finish_date_time) as finish_date_time,
               severity[coalesce(max(array_position(severity, result)), 1)] as worst
        from (
            select *, status in ('NotExecuted', 'Running') as pending,
                   array['NotExecuted', 'Passed', 'Canceled', 'Aborted', 'Failed', 'Error']
                       as severity
            from test_report
            where customer_id = sought.customer_id and execution_id = sought.id
        ) as r
        group by severity
    ) as r";

/// Derives the changes of reports from the results of the executions that they are compared with.
pub(super) const CHANGES: &str = "
    select r.customer_id, r.id,
           case when r.status in ('NotExecuted', 'Running') then 'None'
                when r.result in ('Failed', 'Error') and before.failed then 'Still'
                when r.result in ('Failed', 'Error') then 'New'
                when r.result = 'Passed' and r.is_flaky then 'Flaky'
                when r.result = 'Passed' and before.failed then 'Fixed'
                else 'None' end as change
    from unnest($1::uuid[], $2::uuid[]) as sought (customer_id, id)
    join execution e on e.customer_id = sought.customer_id and e.id = sought.id
    join test_report r on r.customer_id = e.customer_id and r.execution_id = e.id
    left join lateral (
        select p.result in ('Failed', 'Error') as failed
        from unnest(e.baseline) with ordinality as baseline (id, nr)
        join test_report p on p.customer_id = r.customer_id and p.execution_id = baseline.id
            and p.test_case_id = r.test_case_id and p.result in ('Passed', 'Failed', 'Error')
        order by nr
        limit 1
    ) as before on true";

/// Derives counters from reports.
pub(super) const COUNTERS: &str = "
    select r.customer_id, r.test_case_id, c.executions, r.derived
    from test_case_counter c
    right join (
        select r.customer_id, r.test_case_id, max(r.execution_number) as derived
        from test_report r
        join live_execution e on e.customer_id = r.customer_id and e.id = r.execution_id
        group by r.customer_id, r.test_case_id
    ) as r on r.customer_id = c.customer_id and r.test_case_id = c.test_case_id";
