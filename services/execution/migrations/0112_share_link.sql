-- Share links: secrets by which readers without an account see one execution. A row without its
-- secret is useless, because only its hash is stored.
create table share_link (
    customer_id uuid not null,
    id uuid not null,
    execution_id uuid not null,
    token_hash bytea not null,
    expires_at timestamptz not null,
    created_by_id uuid not null,
    created_by text not null,
    created_at timestamptz not null default now(),
    constraint share_link_pkey primary key (customer_id, id),
    -- The only statement without a customer finds a share link by its secret.
    constraint share_link_token_hash_key unique (token_hash)
);

create index share_link_execution_idx on share_link (customer_id, execution_id, id);
