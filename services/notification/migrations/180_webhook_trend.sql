-- The test sets, and the trends of executions, whose notifications are sent; all if empty.
alter table webhook
    add column test_set_ids text[] not null default '{}',
    add column trends text[] not null default '{}';
