-- How often somebody tried of late what may be tried only so often: a level that falls with time.
create table throttle (
    -- Such as an account's email, hashed, or an address.
    subject text not null,
    level double precision not null,
    updated_at timestamptz not null default now(),
    constraint throttle_pkey primary key (subject)
);

create index throttle_updated_at_idx on throttle (updated_at);
