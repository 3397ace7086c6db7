//! The filter of lists of executions.

use assay_proto::{
    CustomerId, EnvironmentId, ExecutionStatus, Fault, ProjectId, SubjectId, TestResult, TestSetId,
    UserId, execution::ExecutionFilter, name_of,
};
use assay_records::Check;
use sqlx::{Postgres, QueryBuilder};

use crate::period::Period;

/// Selects executions of a project.
#[derive(Clone)]
pub(super) struct ListFilter {
    pub(super) customer: CustomerId,
    pub(super) project: ProjectId,
    pub(super) set: Option<TestSetId>,
    /// Archived executions only, active ones only, or all.
    pub(super) archived: Option<bool>,
    pub(super) fields: Fields,
}

/// Fields of the selected executions. Each has an index that is ordered by ids.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    result: Option<String>,
    status: Option<String>,
    tag: Option<String>,
    branch: Option<String>,
    commit: Option<String>,
    build: Option<String>,
    ci_url: Option<String>,
    environment: Option<EnvironmentId>,
    subject: Option<SubjectId>,
    request_user: Option<UserId>,
    period: Period,
    /// Test sets of which only the latest completed execution of the branch is selected.
    latest_of: Option<Vec<TestSetId>>,
}

/// Maximum number of test sets of which the latest executions are selected.
const MOST_SETS: usize = 100;

impl Fields {
    /// Parses and checks the filter of a request.
    pub(super) fn of(filter: &ExecutionFilter) -> Result<Self, Fault> {
        let mut check = Check::default();
        let (from, to) = (filter.from_date.as_deref(), filter.to_date.as_deref());
        let period = Period::of(from, to, &mut check);
        for (name, text) in [
            ("tag", &filter.tag),
            ("branch", &filter.branch),
            ("commit", &filter.commit),
            ("build", &filter.build),
            ("ciUrl", &filter.ci_url),
        ] {
            check.text(name, text.as_deref().unwrap_or_default());
        }
        let environment =
            EnvironmentId::from_field_if_any("environmentId", filter.environment_id.as_deref());
        let environment = check.read(environment)?.flatten();
        let subject = SubjectId::from_field_if_any("subjectId", filter.subject_id.as_deref());
        let subject = check.read(subject)?.flatten();
        let user = UserId::from_field_if_any("requestUserId", filter.request_user_id.as_deref());
        let request_user = check.read(user)?.flatten();
        let latest_of = latest_of(filter, &mut check)?;
        check.done()?;
        let given = |text: &Option<String>| {
            let text = text.as_deref().map(str::trim).filter(|text| !text.is_empty());
            text.map(str::to_owned)
        };
        let result = Some(filter.result()).filter(|result| *result != TestResult::Unspecified);
        let status = Some(filter.status()).filter(|status| *status != ExecutionStatus::Unspecified);
        Ok(Self {
            result: result.map(name_of),
            status: status.map(name_of),
            tag: given(&filter.tag),
            branch: given(&filter.branch),
            commit: given(&filter.commit),
            build: given(&filter.build),
            ci_url: given(&filter.ci_url),
            environment,
            subject,
            request_user,
            period,
            latest_of,
        })
    }
}

impl ListFilter {
    /// Adds the condition that an execution is the latest completed one of its test set on the branch. An index
    /// has those of each test set, branch and environment one after the other, so that each environment of a
    /// set is one step, however many executions there are.
    fn push_latest(&self, sql: &mut QueryBuilder<Postgres>, sets: &[TestSetId]) {
        const NEXT: &str = "
            select coalesce(e.environment_id, '00000000-0000-0000-0000-000000000000')
                       as environment, e.id
            from execution e
            where e.customer_id = asked.customer and e.project_id = asked.project
              and coalesce(e.branch, '') = asked.branch and e.test_set_id = sought.id
              and e.status in ('Completed', 'Canceled') and e.status = 'Completed'";
        const FIRST: &str = "
            order by coalesce(e.environment_id, '00000000-0000-0000-0000-000000000000') desc,
                e.id desc
            limit 1";
        sql.push(" and id = any(array(select latest.id from (select ").push_bind(self.customer);
        sql.push("::uuid as customer, ").push_bind(self.project);
        sql.push("::uuid as project, ").push_bind(self.fields.branch.clone());
        sql.push("::text as branch) as asked cross join unnest(").push_bind(sets.to_vec());
        sql.push(format!(
            "::uuid[]) as sought (id)
             cross join lateral (
                 with recursive series as (
                     ({NEXT} {FIRST})
                     union all
                     select next.* from series cross join lateral (
                         {NEXT} and coalesce(
                             e.environment_id, '00000000-0000-0000-0000-000000000000'
                         ) < series.environment {FIRST}
                     ) as next
                 )
                 select id from series order by id desc limit 1
             ) as latest))"
        ));
    }

    /// Adds the condition to a statement. Each combination is a statement of its own, so that
    /// PostgreSQL plans it for the index that fits.
    pub(super) fn push_to(&self, sql: &mut QueryBuilder<Postgres>) {
        let Fields { result, status, tag, branch, commit, build, ci_url, .. } = &self.fields;
        let Fields { environment, subject, request_user, period, .. } = &self.fields;
        sql.push(" where customer_id = ").push_bind(self.customer);
        sql.push(" and project_id = ").push_bind(self.project);
        push(sql, "test_set_id", self.set);
        // In the words of the partial indexes.
        match self.archived {
            Some(true) => _ = sql.push(" and archived"),
            Some(false) => _ = sql.push(" and not archived"),
            None => {}
        }
        push(sql, "result", result.clone());
        push(sql, "status", status.clone());
        push(sql, "branch", branch.clone());
        push(sql, "commit", commit.clone());
        push(sql, "build", build.clone());
        if let Some(url) = ci_url {
            // The index has the beginning, since a URL may be longer than its entries.
            sql.push(" and left(ci_url, 255) = left(").push_bind(url.clone());
            sql.push(", 255) and ci_url = ").push_bind(url.clone());
        }
        push(sql, "environment_id", *environment);
        push(sql, "software_version_id", *subject);
        push(sql, "request_user_id", *request_user);
        if let Some(tag) = tag {
            sql.push(
                " and exists (select from execution_tag as tagged
                    where tagged.customer_id = live_execution.customer_id
                      and tagged.project_id = live_execution.project_id
                      and tagged.execution_id = live_execution.id and tagged.tag = ",
            );
            sql.push_bind(tag.clone()).push(")");
        }
        let (first, last) = period.ids();
        if let Some(from) = period.from {
            sql.push(" and id >= ").push_bind(first).push(" and request_time >= ").push_bind(from);
        }
        if let Some(sets) = &self.fields.latest_of {
            self.push_latest(sql, sets);
        }
        if let Some(until) = period.until {
            sql.push(" and id < ").push_bind(last).push(" and request_time < ").push_bind(until);
        }
    }
}

/// Reads the test sets of which only the latest executions are selected.
fn latest_of(filter: &ExecutionFilter, check: &mut Check) -> Result<Option<Vec<TestSetId>>, Fault> {
    let Some(ids) = filter.latest_of.as_deref().filter(|ids| !ids.is_empty()) else {
        return Ok(None);
    };
    if filter.branch.as_deref().is_none_or(|branch| branch.trim().is_empty()) {
        check.refuse("latestOf", "requires a branch");
    }
    let ids: Vec<_> = ids.split(',').collect();
    if ids.len() > MOST_SETS {
        check.refuse("latestOf", format!("must have at most {MOST_SETS} ids"));
        return Ok(None);
    }
    let ids = ids.into_iter().map(|id| TestSetId::from_field("latestOf", id.trim()));
    check.read(ids.collect::<Result<Vec<_>, _>>())
}

/// Adds the condition that a column has a value, if there is one.
fn push<T>(sql: &mut QueryBuilder<Postgres>, column: &str, value: Option<T>)
where
    T: for<'q> sqlx::Encode<'q, Postgres> + sqlx::Type<Postgres> + Send + 'static,
{
    if let Some(value) = value {
        sql.push(" and ").push(column).push(" = ").push_bind(value);
    }
}
