-- no-transaction
create index concurrently if not exists test_case_state_ending_idx on test_case_state (until)
    where not is_announced
