-- Schedules: the work of engines, one for each report of an execution in mode Dispatch. With the
-- leases of engines they form a queue:
--
-- * Taking schedules off the queue locks their rows and skips those that are locked already. So it
--   never waits.
-- * All other changes of schedules, and the end of leases, need the lock of the execution. So
--   results of a lease are added by a transaction that knows whether the lease is held.
create table schedule (
    customer_id uuid not null,
    -- The order of the queue among schedules of the same priority, and within an execution the
    -- order of its test set.
    id uuid not null,
    execution_id uuid not null,
    project_id uuid not null,
    test_report_id uuid not null,
    -- The number of the schedule within its execution, from 1.
    report_sequence_nr integer not null,
    -- The target group of the environment. Empty without an environment.
    target_group text not null,
    needs_public_ip boolean not null,
    -- The priority of the test set. Higher ones come first.
    priority smallint not null,
    status text not null,
    initial_queued_time timestamptz not null default now(),
    -- The time of the last lease.
    schedule_sent_at timestamptz,
    -- The number of leases that have expired.
    lost_leases integer not null default 0,
    constraint schedule_pkey primary key (customer_id, id),
    constraint schedule_test_report_key unique (customer_id, test_report_id),
    constraint schedule_test_report_fkey
        foreign key (customer_id, test_report_id) references test_report (customer_id, id),
    constraint schedule_status_check
        check (status in ('Queued', 'Running', 'Completed', 'Canceled'))
);

create index schedule_queue_idx on schedule (customer_id, target_group, priority desc, id)
    where status = 'Queued';
create index schedule_execution_idx on schedule (customer_id, execution_id, id);

create table lease (
    customer_id uuid not null,
    id uuid not null,
    execution_id uuid not null,
    schedule_id uuid not null,
    -- The name of the engine, and the user that it works as.
    engine text not null,
    user_id uuid not null,
    leased_at timestamptz not null default now(),
    expires_at timestamptz not null,
    ended_at timestamptz,
    -- The end of the lease: its engine completed the work (Completed) or returned it to the queue
    -- (Released), the execution ended (Canceled), or the lease was not renewed in time (Lost).
    outcome text,
    constraint lease_pkey primary key (customer_id, id),
    constraint lease_schedule_fkey
        foreign key (customer_id, schedule_id) references schedule (customer_id, id),
    constraint lease_outcome_check
        check (outcome in ('Completed', 'Released', 'Canceled', 'Lost')),
    constraint lease_ended_at_check check ((ended_at is null) = (outcome is null))
);

-- A schedule has at most one lease that is held.
create unique index lease_schedule_key on lease (customer_id, schedule_id) where ended_at is null;
-- For the removal of schedules with their leases.
create index lease_schedule_idx on lease (customer_id, schedule_id);
create index lease_execution_idx on lease (customer_id, execution_id) where ended_at is null;
-- For the reconciler, over all customers: expired leases.
create index lease_expiry_idx on lease (expires_at) where ended_at is null;
