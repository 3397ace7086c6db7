-- Whether the outcomes of a project are served to monitoring systems.
alter table project add column serves_metrics boolean not null default false;
