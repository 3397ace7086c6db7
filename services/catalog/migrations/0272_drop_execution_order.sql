-- No query uses them: the reports of a test case and of a plan are read in the order of their ids.
drop index test_report_test_case_idx;
drop index test_report_test_plan_idx;
