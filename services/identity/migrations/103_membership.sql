-- Memberships: the users of a customer. A membership without an account grants no access.
create table membership (
    customer_id uuid not null,
    -- The id of the user in the interface, in tokens and in events. It is created with the
    -- membership and does not reveal whether the account existed before.
    id uuid not null,
    -- Null until the owner of the invited mailbox accepts.
    account_id uuid,
    user_group_id uuid,
    display_name text not null,
    features text,
    profile text,
    previous_login timestamptz,
    last_login timestamptz,
    -- The time when the account last got a token for this customer. The next login uses the latest.
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

-- Invitations: the mailboxes whose owners have to accept a membership, of new users and of users
-- whose address is about to change.
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
