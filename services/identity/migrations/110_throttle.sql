-- Counters of throttled attempts: levels that decrease with time.
create table throttle (
    -- The hash of an email address, or a network address, with the purpose.
    subject text not null,
    level double precision not null,
    updated_at timestamptz not null default now(),
    constraint throttle_pkey primary key (subject)
);

create index throttle_updated_at_idx on throttle (updated_at);
