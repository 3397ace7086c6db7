-- The identifier of the test case itself, if it was reported under an alias. A gate requires a test case by it.
alter table test_report add column own_identifier text;
