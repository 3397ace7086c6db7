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
    record_id uuid not null,
    -- What the record belongs to: a project, or for a project the customer.
    owner_id uuid not null,
    opened_at timestamptz not null,
    constraint opening_pkey primary key (customer_id, user_id, kind, record_id),
    constraint opening_kind_check check (kind in ('Project', 'TestCase', 'TestSet'))
);

create index opening_opened_at_idx
    on opening (customer_id, user_id, kind, owner_id, opened_at);
-- Who has marked a record, for its deletion.
create index favorite_record_idx on favorite (customer_id, record_id);
