-- Applied events, so that each has one effect.
create table inbox (
    consumer text not null,
    event_id uuid not null,
    received_at timestamptz not null default now(),
    constraint inbox_pkey primary key (consumer, event_id)
) with (autovacuum_vacuum_insert_scale_factor = 0.1);

create index inbox_received_at_idx on inbox (received_at);

-- Parked events: those that could not be applied, until they succeed or become dead letters, and
-- those that wait behind them. NATS does not store them as pending.
create table inbox_parked (
    id bigint generated always as identity,
    consumer text not null,
    stream text not null,
    event_id uuid not null,
    customer_id uuid not null,
    record text not null,
    -- The delivered message.
    subject text not null,
    sequence bigint not null,
    payload bytea not null,
    -- Number of failed attempts; 0 for an event that waits behind a blocked one.
    failures int not null,
    -- Whether later events of the customer wait behind this one, because it is blocked or waits itself.
    diverts boolean not null,
    parked_at timestamptz not null default now(),
    next_attempt_at timestamptz not null,
    constraint inbox_parked_pkey primary key (consumer, event_id)
);

-- For due events by customer, and for customers whose events are diverted.
create index inbox_parked_next_attempt_at_idx
    on inbox_parked (consumer, stream, customer_id, next_attempt_at, id);
create index inbox_parked_diverts_idx on inbox_parked (consumer, stream, customer_id, id)
    where diverts;
-- For the later events of a record.
create index inbox_parked_record_idx on inbox_parked (consumer, stream, customer_id, record);
