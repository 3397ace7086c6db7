-- The numbers by which clients of TestRail know records.
create table number (
    customer_id uuid not null,
    kind text not null,
    number bigint not null,
    -- The project or execution that the record is or belongs to, and its key there.
    scope_id uuid not null,
    key text not null,
    -- A JSON object, which is read only as a whole.
    details text not null,
    constraint number_pkey primary key (customer_id, kind, number),
    constraint number_key_key unique (customer_id, scope_id, kind, key),
    constraint number_kind_check
        check (kind in ('Project', 'TestCase', 'Section', 'Run', 'Result', 'Attachment'))
);

-- The last number of each kind.
create table number_counter (
    customer_id uuid not null,
    kind text not null,
    last bigint not null,
    constraint number_counter_pkey primary key (customer_id, kind)
);
