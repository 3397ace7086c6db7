-- API tokens, by which machines authenticate in the name of a member.
create table api_token (
    customer_id uuid not null,
    id uuid not null,
    user_id uuid not null,
    name text not null,
    usage_permission text not null,
    -- SHA-256. The secret has 256 random bits, so that it needs no salt.
    secret_hash bytea not null,
    expires_at timestamptz,
    last_used_at timestamptz,
    created_at timestamptz not null default now(),
    constraint api_token_pkey primary key (customer_id, id),
    constraint api_token_secret_hash_key unique (secret_hash),
    constraint api_token_membership_fkey foreign key (customer_id, user_id)
        references membership (customer_id, id) on delete cascade
);

create index api_token_user_id_idx on api_token (customer_id, user_id, id);
