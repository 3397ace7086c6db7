-- Customers that the identity service has deleted. They get no projects any more; those that they had
-- are deleted.
create table deleted_customer (
    customer_id uuid not null,
    deleted_at timestamptz not null default now(),
    constraint deleted_customer_pkey primary key (customer_id)
);
