-- Notifications: an action on a record, the source, in relation to another record, the target. Both
-- may belong to other systems, so their ids are text.
create table notification (
    id uuid not null,
    customer_id uuid not null,
    -- In the order of the commits: transactions that add notifications hold the lock of the customer.
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

-- Lists are ordered by id, which grows with time.
create index notification_customer_id_id_idx on notification (customer_id, id)
    where deleted_at is null;
create index notification_position_idx on notification (customer_id, position)
    where deleted_at is null;
-- Purge of deleted customers.
create index notification_deleted_idx on notification (customer_id) where deleted_at is not null;
-- Retention, for all customers.
create index notification_created_at_idx on notification (created_at);
