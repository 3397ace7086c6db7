-- The projects to which the last request of an engine was restricted; empty for all projects.
alter table engine add column project_ids uuid[] not null default '{}';
