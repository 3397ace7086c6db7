-- Further headers of the requests of a webhook: with their values masked, as clients see them, and encrypted.
alter table webhook
    add column headers jsonb not null default '[]',
    add column sealed_headers text;

-- The last attempts to send deliveries and tests, with their requests and responses. Secrets are masked.
create table webhook_attempt (
    id uuid not null,
    customer_id uuid not null,
    webhook_id uuid not null,
    -- Of the only delivery in the request; null for a test and for several deliveries.
    notification_id uuid,
    deliveries int not null,
    attempted_at timestamptz not null default now(),
    duration_in_sec float8 not null,
    request_headers jsonb not null,
    request_body text not null,
    response_status int,
    response_headers jsonb not null,
    response_body text,
    error text,
    constraint webhook_attempt_pkey primary key (id),
    constraint webhook_attempt_webhook_id_fkey foreign key (webhook_id)
        references webhook (id) on delete cascade
);

-- The last attempt of a delivery, as long as it is kept.
alter table webhook_delivery add column attempt_id uuid;

create index webhook_attempt_webhook_id_id_idx on webhook_attempt (webhook_id, id);
-- Retention, for all customers.
create index webhook_attempt_attempted_at_idx on webhook_attempt (attempted_at);
