-- Notifications: what happened to a record, the source, in relation to another one, the target.
-- Neither need be a record of ours, so their ids are text.
create table notification (
    id uuid not null,
    customer_id uuid not null,
    source text not null,
    source_id text not null,
    target text not null,
    target_id text,
    action text not null,
    state text not null,
    revision bigint not null default 1,
    archived boolean not null default false,
    created_at timestamptz not null default now(),
    deleted_at timestamptz,
    constraint notification_pkey primary key (id)
);

-- Ids grow with time, so this is also the order of the list.
create index notification_customer_id_id_idx on notification (customer_id, id)
    where deleted_at is null;
