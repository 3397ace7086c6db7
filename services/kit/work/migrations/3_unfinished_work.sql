-- Work in the background that has begun and not ended well. Work that is done has no row.
create table unfinished_work (
    -- The kind of work, such as `mail`, and the id of what it is done for.
    kind text not null,
    customer_id uuid not null,
    id uuid not null,
    -- How often a program has begun it since an attempt came to an end. It counts the attempts that a
    -- program could not record, because it did not survive them.
    taken int not null,
    -- How often an attempt has failed.
    failures int not null default 0,
    -- The reason of the last failure.
    reason text,
    begun_at timestamptz not null default now(),
    -- Nothing is attempted before. Null while it is attempted.
    next_attempt_at timestamptz,
    -- When it became a dead letter. It is attempted again only if an operator says so.
    given_up_at timestamptz,
    constraint unfinished_work_pkey primary key (kind, customer_id, id)
);

-- Dead letters are counted and listed.
create index unfinished_work_given_up_at_idx on unfinished_work (kind, given_up_at)
    where given_up_at is not null;
