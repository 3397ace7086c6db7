-- The test sets, the trends of executions, and the owners of tests, whose notifications are sent; all if empty.
alter table webhook
    add column test_set_ids text[] not null default '{}',
    add column trends text[] not null default '{}',
    add column owners text[] not null default '{}';
