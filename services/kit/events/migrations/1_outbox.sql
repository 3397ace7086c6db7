-- What has happened and is to be told to others, written in the transaction in which it happened.
create table outbox (
    id bigint generated always as identity,
    event_id uuid not null,
    customer_id uuid not null,
    record text not null,
    noun text not null,
    action text not null,
    data json not null,
    trace jsonb not null,
    created_at timestamptz not null default now(),
    published_at timestamptz,
    constraint outbox_pkey primary key (id),
    constraint outbox_event_id_key unique (event_id)
) with (autovacuum_vacuum_scale_factor = 0.02);

-- What the relay looks for, and what is old enough to be removed.
create index outbox_unpublished_idx on outbox (id) where published_at is null;
create index outbox_published_at_idx on outbox (published_at) where published_at is not null;

-- Wakes the relay. Commits that notify wait for each other, which halves the writes a database can
-- take; so only a relay that sleeps is woken, which it shows by holding a lock.
create function wake_outbox_relay() returns trigger language plpgsql as $$
declare
    asleep constant bigint := hashtextextended('assay outbox relay asleep', 0);
begin
    if pg_try_advisory_lock_shared(asleep) then
        perform pg_advisory_unlock_shared(asleep);
    else
        perform pg_notify('outbox', '');
    end if;
    return null;
end
$$;

create trigger outbox_wake_relay after insert on outbox
    for each statement execute function wake_outbox_relay();
