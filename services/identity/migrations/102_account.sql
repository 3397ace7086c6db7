-- Accounts: one for each email address, with any number of customers. An account is created when
-- the owner of the mailbox accepts an invitation and chooses a password.
create table account (
    id uuid not null,
    email text not null,
    -- Argon2id hash as a PHC string.
    password_hash text not null,
    -- Incremented with every new password, not with a new hash of the same one.
    password_revision bigint not null default 1,
    created_at timestamptz not null default now(),
    constraint account_pkey primary key (id)
);

-- Email addresses are stored as written and compared without case.
create unique index account_email_key on account (lower(email));
