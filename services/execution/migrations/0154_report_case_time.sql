-- no-transaction
create index concurrently if not exists test_report_case_time_idx on test_report (customer_id, test_case_id, execution_id)
