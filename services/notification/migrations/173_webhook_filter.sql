-- The projects, branches and results whose notifications are sent; all if empty.
alter table webhook
    add column project_ids text[] not null default '{}',
    add column branches text[] not null default '{}',
    add column results text[] not null default '{}';
