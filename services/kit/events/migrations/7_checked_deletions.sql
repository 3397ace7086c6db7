-- When a service has last asked the owner of a kind of records which of them were deleted.
create table checked_deletions (
    -- The kind of record, such as `project`.
    kind text not null,
    checked_at timestamptz not null,
    constraint checked_deletions_pkey primary key (kind)
);
