-- Who did what, when and from where. Nothing is ever changed here, and nothing refers to records
-- that may go.
create table audit_entry (
    id uuid not null,
    -- None for what belongs to no customer, such as a login to an account that does not exist.
    customer_id uuid,
    time timestamptz not null default now(),
    action text not null,
    user_id uuid,
    user_email text,
    target text,
    target_id text,
    address text,
    details text,
    constraint audit_entry_pkey primary key (id)
);

create index audit_entry_customer_id_idx on audit_entry (customer_id, id);
create index audit_entry_user_id_idx on audit_entry (customer_id, user_id, id);
