-- Tokens that have died before their time: those that match all ids given and were issued before.
-- Writers wait for each other, so that a revocation becomes visible after all that precede it.
create table revocation (
    sequence bigint generated always as identity,
    customer_id uuid,
    user_id uuid,
    api_token_id uuid,
    session_id uuid,
    -- Where this is set, tokens do not die, but carry this name.
    display_name text,
    -- In microseconds since 1970, as tokens have it.
    issued_until bigint not null,
    created_at timestamptz not null default now(),
    constraint revocation_pkey primary key (sequence)
);

-- The longest that tokens of a key are valid, which says how long a key has to stay public and a
-- revocation known.
alter table signing_key add column token_lifetime_in_s bigint not null default 0;
