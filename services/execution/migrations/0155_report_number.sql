-- The reports of a test case are read in the order of time, that of the ids of their executions, and no
-- longer in that of their arrival. Numbers are assigned under the lock of the counter.
alter table test_report drop constraint test_report_execution_number_key;
