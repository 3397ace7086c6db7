-- Which events have had their effect, so that none has it twice.
create table inbox (
    consumer text not null,
    event_id uuid not null,
    received_at timestamptz not null default now(),
    constraint inbox_pkey primary key (consumer, event_id)
) with (autovacuum_vacuum_insert_scale_factor = 0.1);

create index inbox_received_at_idx on inbox (received_at);

-- How often applying an event has failed, until it succeeds or becomes a dead letter.
create table inbox_failure (
    consumer text not null,
    event_id uuid not null,
    failures int not null default 1,
    failed_at timestamptz not null default now(),
    constraint inbox_failure_pkey primary key (consumer, event_id)
);

create index inbox_failure_failed_at_idx on inbox_failure (failed_at);
