-- Webhooks: other systems that are sent notifications by HTTP.
create table webhook (
    id uuid not null,
    customer_id uuid not null,
    url text not null,
    -- `Source.Action`, either of which may be `*`, or `*`.
    events text[] not null,
    -- What deliveries are signed with, encrypted; and for a while what they were signed with before.
    secret text not null,
    previous_secret text,
    previous_secret_until timestamptz,
    archived boolean not null default false,
    -- Since when all attempts have failed.
    failing_since timestamptz,
    -- Nothing is sent before: because somebody is sending, or because attempts have failed.
    rests_until timestamptz not null default now(),
    revision bigint not null default 1,
    created_at timestamptz not null default now(),
    deleted_at timestamptz,
    constraint webhook_pkey primary key (id)
);

create index webhook_customer_id_id_idx on webhook (customer_id, id) where deleted_at is null;
-- Of all customers: those whose deliveries are to be removed.
create index webhook_deleted_at_idx on webhook (id) where deleted_at is not null;

-- What a webhook is to be sent, or was. It is kept as long as the notification.
create table webhook_delivery (
    webhook_id uuid not null,
    notification_id uuid not null,
    attempts int not null default 0,
    last_attempt_at timestamptz,
    -- Null where it is tried no more.
    next_attempt_at timestamptz default now(),
    delivered_at timestamptz,
    response_status int,
    error text,
    -- The trace that the notification is part of.
    trace jsonb not null default '{}',
    constraint webhook_delivery_pkey primary key (webhook_id, notification_id),
    constraint webhook_delivery_webhook_id_fkey foreign key (webhook_id)
        references webhook (id),
    constraint webhook_delivery_notification_id_fkey foreign key (notification_id)
        references notification (id) on delete cascade
);

-- Of all customers: what is to be sent, webhook by webhook.
create index webhook_delivery_next_attempt_at_idx on webhook_delivery (webhook_id, next_attempt_at)
    where next_attempt_at is not null;
create index webhook_delivery_failed_idx on webhook_delivery (webhook_id, notification_id)
    where next_attempt_at is null and delivered_at is null;
create index webhook_delivery_notification_id_idx on webhook_delivery (notification_id);
