-- For lists that are filtered by the commit or the build.
create index execution_commit_idx on execution (customer_id, project_id, commit, id)
    where commit is not null;
create index execution_build_idx on execution (customer_id, project_id, build, id)
    where build is not null;
