-- When a report was received: a client that repeats its request does so soon.
alter table upload add column received_at timestamptz not null default now();
