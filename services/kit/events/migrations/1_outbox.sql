-- Events of the service, written in the transaction of the change.
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
    constraint outbox_pkey primary key (id)
) with (autovacuum_vacuum_scale_factor = 0.02);

-- For the relay, and for the removal of old rows.
create index outbox_unpublished_idx on outbox (id) where published_at is null;
create index outbox_published_at_idx on outbox (published_at) where published_at is not null;

-- Wakes the relay. Commits with a notification are serialized, which halves the write throughput of a
-- database, so only a sleeping relay is notified. It holds a lock while it sleeps.
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
