-- Memberships: the users of a customer. A membership grants something when it has an account.
create table membership (
    customer_id uuid not null,
    -- The id of the user: towards the customer, in tokens and in events. It is as old as the
    -- membership, so that it does not reveal whether the account is older.
    id uuid not null,
    -- None until the owner of the invited mailbox has accepted.
    account_id uuid,
    user_group_id uuid,
    display_name text not null,
    features text,
    profile text,
    previous_login timestamptz,
    last_login timestamptz,
    -- When the account last got a token for this customer; the next login is for it again.
    last_used_at timestamptz,
    revision bigint not null default 1,
    archived boolean not null default false,
    created_at timestamptz not null default now(),
    constraint membership_pkey primary key (customer_id, id),
    constraint membership_id_key unique (id),
    constraint membership_account_id_key unique (customer_id, account_id),
    constraint membership_customer_id_fkey foreign key (customer_id) references customer (id),
    constraint membership_account_id_fkey foreign key (account_id) references account (id),
    constraint membership_user_group_id_fkey
        foreign key (customer_id, user_group_id) references user_group (customer_id, id)
);

create index membership_account_id_idx on membership (account_id);
create index membership_user_group_id_idx on membership (customer_id, user_group_id);

-- Invitations: the mailbox whose owner has to accept a membership. A new user has one, and a user
-- whose address is to change.
create table invitation (
    customer_id uuid not null,
    user_id uuid not null,
    email text not null,
    created_at timestamptz not null default now(),
    constraint invitation_pkey primary key (customer_id, user_id),
    constraint invitation_membership_fkey foreign key (customer_id, user_id)
        references membership (customer_id, id) on delete cascade
);

create unique index invitation_email_key on invitation (customer_id, lower(email));
create index invitation_email_idx on invitation (lower(email));
