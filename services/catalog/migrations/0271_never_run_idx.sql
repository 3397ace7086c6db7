-- no-transaction
-- Test cases that never ran, of which a project has few. An update that changes the last result of a test case writes
-- its entries of all indexes again; most executions change few.
create index concurrently if not exists test_case_never_run_idx on test_case (customer_id, project_id, id)
    where live and last_result is null
