-- Mails that are to be sent, written in the transaction of the change that they tell of. What a
-- mail says is made when it is sent, so that no secret lies here.
create table mail (
    -- Of the mail about an execution: the execution's, so that there is one.
    id uuid not null,
    kind text not null,
    -- As it was given, whether or not there is such an account.
    recipient text,
    -- The member it goes to, at whatever address they have when it is sent.
    account_id uuid,
    -- Where the recipient wants to be led to, as far as they may say so.
    host text,
    -- Who asked for it.
    address text,
    -- The customer that invites, or whose execution has ended.
    customer_id uuid,
    -- The execution as its event tells of it.
    execution jsonb,
    attempts int not null default 0,
    next_attempt_at timestamptz not null default now(),
    created_at timestamptz not null default now(),
    constraint mail_pkey primary key (id),
    constraint mail_kind_check
        check (kind in ('Invitation', 'PasswordReset', 'ExecutionEnded')),
    constraint mail_link_check
        check ((kind <> 'ExecutionEnded') = (recipient is not null and host is not null)),
    constraint mail_execution_check check (
        (kind = 'ExecutionEnded')
            = (account_id is not null and customer_id is not null and execution is not null)
    ),
    constraint mail_customer_id_fkey foreign key (customer_id) references customer (id)
);

-- Somebody waits for a link; a report can come a little later.
create index mail_next_attempt_at_idx on mail ((kind = 'ExecutionEnded'), next_attempt_at);

-- The links by which accounts can set a password. An account has one at most: a newer one voids it.
create table password_link (
    account_id uuid not null,
    -- SHA-256; the token has as many random bits, so that it needs no salt.
    token_hash bytea not null,
    expires_at timestamptz not null,
    constraint password_link_pkey primary key (account_id),
    constraint password_link_token_hash_key unique (token_hash),
    constraint password_link_account_id_fkey foreign key (account_id)
        references account (id) on delete cascade
);
