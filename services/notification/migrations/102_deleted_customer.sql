-- Customers that were deleted. Nothing of them is read or added any more.
create table deleted_customer (
    customer_id uuid not null,
    deleted_at timestamptz not null default now(),
    -- Null until everything of the customer is removed here.
    purged_at timestamptz,
    -- Null until the subscribers of the customer are removed from NATS.
    withdrawn_at timestamptz,
    constraint deleted_customer_pkey primary key (customer_id)
);

create index deleted_customer_deleted_at_idx on deleted_customer (deleted_at)
    where purged_at is null or withdrawn_at is null;
