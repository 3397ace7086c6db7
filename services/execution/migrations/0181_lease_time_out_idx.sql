-- no-transaction
create index concurrently if not exists lease_time_out_idx on lease (times_out_at) where ended_at is null
