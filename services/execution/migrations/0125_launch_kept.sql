-- The requests of a launch are kept for a while after its end, so that it can be merged with others.
alter table launch
    -- The end of that time. Null if no request is kept.
    add column kept_until timestamptz,
    -- The number of failed attempts to store its results, after each of which the next one is later.
    add column failures integer not null default 0,
    -- The description that the agent gave last.
    add column description text not null default '',
    -- How often its tests were run again and reported to the same launch.
    add column reruns integer not null default 0;

-- For the task that removes requests, over all customers.
create index launch_kept_idx on launch (kept_until) where kept_until is not null;
