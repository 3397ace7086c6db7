-- For lists that are filtered by the origin of the software.
create index execution_commit_idx on execution (customer_id, project_id, commit, id)
    where commit is not null;
create index execution_build_idx on execution (customer_id, project_id, build, id)
    where build is not null;
create index execution_ci_url_idx on execution (customer_id, project_id, left(ci_url, 255), id)
    where ci_url is not null;
