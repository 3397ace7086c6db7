-- Events that were given up stay parked as dead letters, until an operator retries or drops them.
alter table inbox_parked
    -- How often a program has begun to apply it since an attempt came to an end.
    add column taken int not null default 0,
    -- The reason of the last failure.
    add column reason text,
    add column given_up_at timestamptz;

drop index inbox_parked_next_attempt_at_idx;
create index inbox_parked_next_attempt_at_idx
    on inbox_parked (consumer, stream, customer_id, next_attempt_at, id) where given_up_at is null;
create index inbox_parked_given_up_at_idx on inbox_parked (given_up_at) where given_up_at is not null;
