-- The maximum duration of an instance of the plan, in minutes. 0 for the default of the installation.
alter table schedule add column maximum_duration_in_min double precision not null default 0;

-- The time at which the lease ends unless its engine reports an instance before. Null for leases of
-- the release before.
alter table lease add column times_out_at timestamptz;
