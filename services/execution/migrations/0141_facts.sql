-- The facts that states are derived from, beside instances. With these, `verify` finds a
-- damaged state.

-- The result of the instances that a report lacks because it ended early. `NotExecuted` as long as
-- they are expected, and for reports that have all instances.
alter table test_report
    add column missing_result text not null default 'NotExecuted',
    add constraint test_report_missing_result_check
        check (missing_result in ('NotExecuted', 'Aborted', 'Canceled', 'Error'));

update test_report
set missing_result = case when engine_failure is not null then 'Error'
                          when status = 'Canceled' then 'Canceled' else 'Aborted' end
where finished_instances_count < requested_instances_count
  and status not in ('NotExecuted', 'Running');

-- The status that the last review has set. Null without one, and after the result has changed.
alter table test_report
    add column judgement text,
    add constraint test_report_judgement_check
        check (judgement in ('InReview', 'Investigation', 'Accepted', 'Rejected'));

update test_report set judgement = status
where status in ('Investigation', 'Accepted', 'Rejected')
   or status = 'InReview' and reviewed_by_id is not null;

-- Whether a user has canceled the execution.
alter table execution add column is_canceled boolean not null default false;
update execution set is_canceled = true where status = 'Canceled';

-- Whether the failure was known when it was reported or reviewed. A report whose failures are all
-- known is muted.
alter table failure add column is_known boolean not null default false;
update failure f set is_known = true
from test_report r
where r.customer_id = f.customer_id and r.id = f.test_report_id and r.is_muted;

-- The views have the columns that their tables had when the views were created.
create or replace view live_execution as
select * from execution e
where not (select exists (
    select from deletion d
    where d.customer_id = e.customer_id
      and d.project_id in (e.project_id, '00000000-0000-0000-0000-000000000000')
));
create or replace view kept_failure as
select f.*
from failure f
join execution e on e.customer_id = f.customer_id and e.id = f.execution_id
where e.expired_at is null;
