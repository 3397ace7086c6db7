-- The reason why an engine failed to run the test, as it was reported; empty if none was. Null if no
-- engine failed.
alter table test_report add column engine_failure text;
