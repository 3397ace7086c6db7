//! Series: the executions of a test set in one environment and on one branch.

/// Selects the latest ended executions of a series before an execution, the latest first. Follows the columns of a
/// statement, whose parameters are the customer, the project, the test set, the environment, the branch, the
/// execution, and [`CONSIDERED`]. Executions of launches that were merged into another one are left out: their
/// results are those of the other execution.
pub(crate) const ENDED_BEFORE: &str = "from execution
     where customer_id = $1 and project_id = $2::uuid and test_set_id = $3::uuid
       and coalesce(environment_id, '00000000-0000-0000-0000-000000000000')
           = coalesce($4::uuid, '00000000-0000-0000-0000-000000000000')
       and coalesce(branch, '') = $5
       and status in ('Completed', 'Canceled')
       and not is_merged
       and id < $6::uuid
     order by id desc
     limit $7";

/// Maximum number of executions of a series among which suitable ones are looked for: outages without an end, or
/// many canceled executions, must not have the whole series read.
pub(crate) const CONSIDERED: i64 = 200;
