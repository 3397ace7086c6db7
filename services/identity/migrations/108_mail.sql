-- Mails that are to be sent, written in the transaction of the change that they tell of. What a
-- mail says is made when it is sent, so that no secret lies here.
create table mail (
    -- Of the mail about an execution: the execution's, so that there is one.
    id uuid not null,
    kind text not null,
    -- Of the mail for a new password: as it was given, whether or not there is such an account.
    recipient text,
    -- The user it goes to, at whatever address that is when it is sent.
    user_id uuid,
    -- Where the recipient wants to be led to, as far as they may say so.
    host text,
    -- Who asked for it.
    address text,
    -- The user's customer.
    customer_id uuid,
    -- The execution as its event tells of it.
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

-- Somebody waits for a link; a report can come a little later.
create index mail_next_attempt_at_idx on mail ((kind = 'ExecutionEnded'), next_attempt_at);

create index mail_customer_id_idx on mail (customer_id);

-- The links by which passwords are set and invitations accepted: of an account, or of an
-- invitation. Each has three at most; a fourth one takes the place of the oldest.
create table password_link (
    -- SHA-256; the token has as many random bits, so that it needs no salt.
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
