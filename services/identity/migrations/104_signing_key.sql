-- Keys for signing tokens. A key is public before it signs, so that every verifier knows it, and
-- until its last token has expired.
create table signing_key (
    -- Thumbprint of the public key (RFC 7638).
    kid text not null,
    public_jwk jsonb not null,
    -- Ed25519 key as PKCS#8, encrypted.
    sealed_key text not null,
    created_at timestamptz not null default now(),
    signs_from timestamptz not null default now(),
    public_until timestamptz,
    constraint signing_key_pkey primary key (kid)
);
