-- Engines that have asked for work, by their names. Rows are written every few seconds, not with each
-- request, and removed seven days after the last one.
create table engine (
    customer_id uuid not null,
    id uuid not null,
    name text not null,
    target_group text not null,
    labels text[] not null,
    version text not null,
    first_seen_at timestamptz not null default now(),
    last_seen_at timestamptz not null default now(),
    constraint engine_pkey primary key (customer_id, id),
    constraint engine_name_key unique (customer_id, name)
);

-- For their removal, over all customers.
create index engine_last_seen_idx on engine (last_seen_at);
