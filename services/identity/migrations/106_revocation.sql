-- Revocations: tokens that match all given ids and were issued until a time. Writers lock each
-- other out, so that revocations become visible in the order of their sequence numbers.
create table revocation (
    sequence bigint generated always as identity,
    customer_id uuid,
    user_id uuid,
    api_token_id uuid,
    session_id uuid,
    -- If set, tokens are not revoked but get this name.
    display_name text,
    -- Microseconds since 1970, as in tokens.
    issued_until bigint not null,
    created_at timestamptz not null default now(),
    constraint revocation_pkey primary key (sequence)
);

-- The longest lifetime of tokens of a key, which determines how long keys stay public and
-- revocations are kept.
alter table signing_key add column token_lifetime_in_s bigint not null default 0;
