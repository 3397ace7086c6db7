-- Memberships: an account as one customer sees it.
create table membership (
    customer_id uuid not null,
    account_id uuid not null,
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
    constraint membership_pkey primary key (customer_id, account_id),
    constraint membership_customer_id_fkey foreign key (customer_id) references customer (id),
    constraint membership_account_id_fkey foreign key (account_id) references account (id),
    constraint membership_user_group_id_fkey
        foreign key (customer_id, user_group_id) references user_group (customer_id, id)
);

create index membership_account_id_idx on membership (account_id);
create index membership_user_group_id_idx on membership (customer_id, user_group_id);
