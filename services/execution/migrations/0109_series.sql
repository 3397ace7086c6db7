-- The ended executions of a series. The project and the branch come first, so that the series of the
-- default branch of a project are found one after the other.
create index execution_ended_idx
    on execution (customer_id, project_id, coalesce(branch, ''), test_set_id,
        coalesce(environment_id, '00000000-0000-0000-0000-000000000000'), id)
    where status in ('Completed', 'Canceled');

drop index execution_series_idx;
