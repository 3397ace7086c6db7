-- The state of customers, as the events of the identity service report it. The last event counts.
create table customer_state (
    customer_id uuid not null,
    is_archived boolean not null,
    -- The time of the event. Events may arrive in any order.
    changed_at timestamptz not null,
    constraint customer_state_pkey primary key (customer_id)
);

-- The share links that grant access: those that have not expired, of customers that are not archived.
create view live_share_link as
    select l.customer_id, l.id, l.execution_id, l.token_hash, l.expires_at
    from share_link l
    where l.expires_at > now() and not exists (
        select from customer_state s where s.customer_id = l.customer_id and s.is_archived
    );
