-- Customers, which own projects and users.
create table customer (
    id uuid not null,
    name text not null,
    account_number text,
    address text,
    cost_center text,
    currency text not null,
    tax double precision not null,
    discounts text,
    minimum_consumption_in_h double precision not null,
    due_days double precision not null,
    technical_name text,
    subdomain text not null,
    appliances text,
    revision bigint not null default 1,
    archived boolean not null default false,
    created_at timestamptz not null default now(),
    deleted_at timestamptz,
    -- The time when the rows of the deleted customer had been removed.
    purged_at timestamptz,
    constraint customer_pkey primary key (id),
    constraint customer_subdomain_check
        check (subdomain ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$')
);

create index customer_purge_idx on customer (deleted_at)
where deleted_at is not null and purged_at is null;

-- The subdomain of a deleted customer can be reused.
create unique index customer_subdomain_key on customer (subdomain) where deleted_at is null;
