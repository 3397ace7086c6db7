-- Settings of members; a member without a row has the defaults.
create table user_settings (
    customer_id uuid not null,
    user_id uuid not null,
    mail_when_execution_ends boolean not null,
    revision bigint not null default 1,
    constraint user_settings_pkey primary key (customer_id, user_id),
    constraint user_settings_membership_fkey foreign key (customer_id, user_id)
        references membership (customer_id, id) on delete cascade
);
