-- The audit log. Entries are never changed, and have no foreign keys to records that may be
-- deleted.
create table audit_entry (
    id uuid not null,
    -- Null for actions without a customer, such as a login to an unknown account.
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
