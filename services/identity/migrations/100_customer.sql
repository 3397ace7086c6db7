-- Customers: who projects and users belong to.
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
    -- When all that belonged to the deleted customer was removed.
    purged_at timestamptz,
    constraint customer_pkey primary key (id),
    constraint customer_subdomain_check
        check (subdomain ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$')
);

create index customer_purge_idx on customer (deleted_at)
where deleted_at is not null and purged_at is null;

-- A deleted customer's subdomain may be given to another one.
create unique index customer_subdomain_key on customer (subdomain) where deleted_at is null;
