//! The instance of a shared test report.

use assay_ledger::instance;
use assay_proto::{
    CustomerId, EnumColumn, Fault, InstanceId, ShareLinkId, TestReportId, TestResult,
    execution::Instance,
};
use sqlx::{FromRow, PgExecutor, PgPool};

use crate::artifact::Artifacts;

/// The instance to show, and the number of instances of its report.
#[derive(FromRow)]
pub(super) struct Found {
    /// None if it has expired, or was never reported.
    id: Option<InstanceId>,
    instance_nr: i32,
    #[sqlx(try_from = "EnumColumn<TestResult>")]
    result: i32,
    pub(super) count: i32,
}

/// Finds the instance with a number. Without one, finds the first that fails, or else the first that was
/// retried, or else the first.
pub(super) async fn find(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    report: TestReportId,
    number: Option<i32>,
) -> Result<Found, Fault> {
    let found = sqlx::query_as(
        "select i.id, coalesce(i.instance_nr, $3, 1) as instance_nr,
                coalesce(i.result, r.result) as result, r.requested_instances_count as count
         from test_report r
         left join lateral (
             select i.id, i.instance_nr, i.result from instance i
             join execution e on e.customer_id = $1 and e.id = r.execution_id
             where i.customer_id = $1 and i.test_report_id = r.id and e.expired_at is null
               and ($3::int is null or i.instance_nr = $3)
             order by i.result not in ('Failed', 'Error'), i.attempt = 1, i.instance_nr
             limit 1
         ) as i on true
         where r.customer_id = $1 and r.id = $2
           and coalesce($3, 1) between 1 and greatest(r.requested_instances_count, 1)",
    );
    let found = found.bind(customer).bind(report).bind(number).fetch_optional(db).await?;
    found.ok_or(Fault::NotFound("instance"))
}

impl Found {
    /// Reads the instance, with links to stored files, which are valid as long as the share link, and
    /// without any others.
    pub(super) async fn read(
        &self,
        db: &PgPool,
        artifacts: &Artifacts,
        customer: CustomerId,
        report: TestReportId,
        share_link: ShareLinkId,
    ) -> Result<Instance, Fault> {
        let Some(id) = self.id else {
            let Self { instance_nr, result, .. } = *self;
            return Ok(Instance { instance_nr, result, ..Instance::default() });
        };
        let mut instance = instance::details(db, customer, report, id).await?;
        Artifacts::remove_foreign(&mut instance);
        artifacts.resolve(customer, report, Some(share_link), &mut instance).await?;
        Ok(instance)
    }
}
