-- no-transaction
create index concurrently if not exists schedule_project_idx on schedule (customer_id, project_id, target_group, priority desc, id) where status = 'Queued'
