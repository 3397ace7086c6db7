-- Deleted customers. Their records are hidden, and none are added.
create table deleted_customer (
    customer_id uuid not null,
    deleted_at timestamptz not null default now(),
    -- Null until all rows of the customer are removed.
    purged_at timestamptz,
    -- Null until the subscribers of the customer are removed from NATS.
    withdrawn_at timestamptz,
    constraint deleted_customer_pkey primary key (customer_id)
);

create index deleted_customer_deleted_at_idx on deleted_customer (deleted_at)
    where purged_at is null or withdrawn_at is null;
