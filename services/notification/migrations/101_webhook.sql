-- Webhooks: URLs of other systems that receive notifications by HTTP.
create table webhook (
    id uuid not null,
    customer_id uuid not null,
    url text not null,
    -- Patterns of the form `Source.Action`, where each part may be `*`; or `*` alone.
    events text[] not null,
    -- Encrypted secrets that sign deliveries: the current one and, for a day, the previous one.
    secret text not null,
    previous_secret text,
    previous_secret_until timestamptz,
    archived boolean not null default false,
    -- Time of the first failure since the last success.
    failing_since timestamptz,
    -- End of the current claim or, after failed attempts, of the pause. Nothing is sent before.
    rests_until timestamptz not null default now(),
    revision bigint not null default 1,
    created_at timestamptz not null default now(),
    deleted_at timestamptz,
    constraint webhook_pkey primary key (id)
);

create index webhook_customer_id_id_idx on webhook (customer_id, id) where deleted_at is null;
-- Removal of deliveries of deleted webhooks, for all customers.
create index webhook_deleted_at_idx on webhook (id) where deleted_at is not null;

-- Deliveries of notifications to webhooks, pending and finished. A delivery is removed with its
-- notification.
create table webhook_delivery (
    webhook_id uuid not null,
    notification_id uuid not null,
    attempts int not null default 0,
    last_attempt_at timestamptz,
    -- Null after success and after the last attempt.
    next_attempt_at timestamptz default now(),
    delivered_at timestamptz,
    response_status int,
    error text,
    -- Trace context of the notification.
    trace jsonb not null default '{}',
    constraint webhook_delivery_pkey primary key (webhook_id, notification_id),
    constraint webhook_delivery_webhook_id_fkey foreign key (webhook_id)
        references webhook (id),
    constraint webhook_delivery_notification_id_fkey foreign key (notification_id)
        references notification (id) on delete cascade
);

-- Due deliveries by webhook, for all customers.
create index webhook_delivery_next_attempt_at_idx on webhook_delivery (webhook_id, next_attempt_at)
    where next_attempt_at is not null;
create index webhook_delivery_failed_idx on webhook_delivery (webhook_id, notification_id)
    where next_attempt_at is null and delivered_at is null;
create index webhook_delivery_notification_id_idx on webhook_delivery (notification_id);
