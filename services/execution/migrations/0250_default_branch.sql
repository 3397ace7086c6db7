-- The default branch that the project had when the execution was requested. A running launch may change its branch, and
-- is then compared with other executions.
alter table execution add column default_branch text not null default '';
