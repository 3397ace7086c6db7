-- Notifications: what happened to a record, the source, in relation to another one, the target.
-- Neither need be a record of ours, so their ids are text.
create table notification (
    id uuid not null,
    customer_id uuid not null,
    -- Who adds notifications of a customer takes turns, so these are in the order of the commits.
    position bigint not null generated always as identity,
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
create index notification_position_idx on notification (customer_id, position)
    where deleted_at is null;
-- All that there is of a customer that was deleted.
create index notification_deleted_idx on notification (customer_id) where deleted_at is not null;
-- Of all customers: what is old enough to be removed.
create index notification_created_at_idx on notification (created_at);
