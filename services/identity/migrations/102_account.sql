-- Accounts: one for each email, whatever the number of customers its owner works for.
create table account (
    id uuid not null,
    email text not null,
    -- Argon2id as a PHC string; none until the owner has chosen a password.
    password_hash text,
    created_at timestamptz not null default now(),
    constraint account_pkey primary key (id)
);

-- An email is kept as it was written, and is the same in any case.
create unique index account_email_key on account (lower(email));
