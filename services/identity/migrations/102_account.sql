-- Accounts: one for each email, whatever the number of customers its owner works for. An account
-- begins when the owner of the mailbox has accepted an invitation and chosen a password.
create table account (
    id uuid not null,
    email text not null,
    -- Argon2id as a PHC string.
    password_hash text not null,
    -- Grows with every new password; not when the hash of the same password is made again.
    password_revision bigint not null default 1,
    created_at timestamptz not null default now(),
    constraint account_pkey primary key (id)
);

-- An email is kept as it was written, and is the same in any case.
create unique index account_email_key on account (lower(email));
