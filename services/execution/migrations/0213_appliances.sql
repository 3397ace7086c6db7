-- The appliances of customers, from events of the identity service: the target groups that environments may name
-- and engines may serve. Without a row, or without groups, all of them.
create table appliances (
    customer_id uuid not null,
    target_groups text[] not null,
    -- The revision of the customer in the event.
    revision bigint not null,
    constraint appliances_pkey primary key (customer_id)
);
