alter table outbox
    -- Sequence of the event in the stream, from when it was published for the last time.
    add column sequence bigint;

-- The stream of the outbox as the relay has seen it last, and what all of its consumers have received.
create table outbox_stream (
    name text not null,
    -- Creation time of the stream, as NATS states it. A stream that was lost and created again has
    -- another one.
    created text not null,
    -- Consumers that the stream had.
    consumers text[] not null,
    -- All consumers have received the messages up to this sequence...
    sequence bigint not null,
    -- ...among them all events that were published before this time.
    received_until timestamptz not null,
    constraint outbox_stream_pkey primary key (name)
);
