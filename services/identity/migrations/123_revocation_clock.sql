-- The latest times of issue of tokens, and the latest time of a revocation, so that both go on when
-- the clock of the database steps back. Revocations write the slot 0; a token is issued in a slot
-- that depends on the connection, so that logins do not wait for each other.
create table revocation_clock (
    slot int not null,
    latest timestamptz not null,
    constraint revocation_clock_pkey primary key (slot)
);
