-- The owners of the test, which follow from its labels. Only the program knows how, so that it is stated once.
alter table test_report add column owners text[] not null default '{}';
