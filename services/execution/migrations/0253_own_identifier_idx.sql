-- no-transaction
create index concurrently if not exists test_report_own_identifier_idx
    on test_report (customer_id, execution_id, own_identifier) where own_identifier is not null
