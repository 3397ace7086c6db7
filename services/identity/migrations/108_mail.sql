-- Queued mails, written in the transaction of the change that they report. Their texts are written
-- when they are sent, so that this table contains no secrets.
create table mail (
    -- For the end of an execution: the id of the execution, so that it is queued once.
    id uuid not null,
    kind text not null,
    -- For a password reset: the requested address, which may not have an account.
    recipient text,
    -- The user to send it to; the address is looked up when it is sent.
    user_id uuid,
    -- The requested host of the link.
    host text,
    -- The address that has requested it.
    address text,
    -- The customer of the user.
    customer_id uuid,
    -- The data of the event about the execution.
    execution jsonb,
    attempts int not null default 0,
    next_attempt_at timestamptz not null default now(),
    created_at timestamptz not null default now(),
    constraint mail_pkey primary key (id),
    constraint mail_kind_check
        check (kind in ('Invitation', 'EmailChange', 'PasswordReset', 'ExecutionEnded')),
    constraint mail_recipient_check
        check ((kind = 'PasswordReset') = (recipient is not null and host is not null)),
    constraint mail_user_check
        check ((kind <> 'PasswordReset') = (user_id is not null and customer_id is not null)),
    constraint mail_execution_check check ((kind = 'ExecutionEnded') = (execution is not null)),
    constraint mail_customer_id_fkey foreign key (customer_id) references customer (id)
);

-- Links take precedence over reports of executions.
create index mail_next_attempt_at_idx on mail ((kind = 'ExecutionEnded'), next_attempt_at);

create index mail_customer_id_idx on mail (customer_id);

-- Links for setting a password of an account or accepting an invitation. An account or invitation
-- has at most three; a fourth one replaces the oldest.
create table password_link (
    -- SHA-256. The token has 256 random bits, so that it needs no salt.
    token_hash bytea not null,
    account_id uuid,
    customer_id uuid,
    user_id uuid,
    expires_at timestamptz not null,
    created_at timestamptz not null default clock_timestamp(),
    constraint password_link_pkey primary key (token_hash),
    constraint password_link_check
        check ((account_id is null) = (customer_id is not null and user_id is not null)),
    constraint password_link_account_id_fkey foreign key (account_id)
        references account (id) on delete cascade,
    constraint password_link_invitation_fkey foreign key (customer_id, user_id)
        references invitation (customer_id, user_id) on delete cascade
);

create index password_link_account_id_idx on password_link (account_id);
create index password_link_invitation_idx on password_link (customer_id, user_id);
