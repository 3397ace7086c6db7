-- The maximum duration of an instance. 0 for the default of the installation.
alter table test_plan add column maximum_duration_in_min double precision not null default 0;
