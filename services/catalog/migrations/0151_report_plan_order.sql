-- no-transaction
create index concurrently if not exists test_report_plan_id_idx on test_report (customer_id, test_plan_id, id)
