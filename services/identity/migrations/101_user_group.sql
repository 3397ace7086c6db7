-- Groups of users with the same permissions, stored as names in the order of the contract.
create table user_group (
    customer_id uuid not null,
    id uuid not null,
    name text not null,
    description text,
    usage_permission text not null,
    revision bigint not null default 1,
    archived boolean not null default false,
    created_at timestamptz not null default now(),
    deleted_at timestamptz,
    constraint user_group_pkey primary key (customer_id, id),
    constraint user_group_customer_id_fkey foreign key (customer_id) references customer (id)
);
