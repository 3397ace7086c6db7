-- no-transaction
create index concurrently if not exists test_report_case_id_idx on test_report (customer_id, test_case_id, id)
