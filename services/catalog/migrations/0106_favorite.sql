-- What users have at hand: what they marked as favorites, and what they opened last. Rows of records
-- that are in the archive or deleted are not seen, since the lists show active records only.
create table favorite (
    customer_id uuid not null,
    user_id uuid not null,
    kind text not null,
    record_id uuid not null,
    constraint favorite_pkey primary key (customer_id, user_id, kind, record_id),
    constraint favorite_kind_check check (kind in ('Project', 'TestCase', 'TestSet'))
);

create table opening (
    customer_id uuid not null,
    user_id uuid not null,
    kind text not null,
    -- What the records belong to: a project, or for projects the customer.
    owner_id uuid not null,
    -- The latest record comes first.
    record_ids uuid[] not null,
    constraint opening_pkey primary key (customer_id, user_id, kind, owner_id),
    constraint opening_kind_check check (kind in ('Project', 'TestCase', 'TestSet'))
);

-- Who has marked a record, for its deletion.
create index favorite_record_idx on favorite (customer_id, record_id);
