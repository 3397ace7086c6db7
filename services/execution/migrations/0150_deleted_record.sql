-- Deleted test cases and test sets, from events of the catalog. What is shown of the present leaves them
-- out; executions keep their results.
create table deleted_record (
    customer_id uuid not null,
    project_id uuid not null,
    -- The id of the test case or of the test set.
    id uuid not null,
    constraint deleted_record_pkey primary key (customer_id, project_id, id)
);
