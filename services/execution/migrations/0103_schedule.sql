-- Schedules: what engines have to do, one for each report of an execution in mode Dispatch; and the
-- leases that engines have on them. Together they are a queue:
--
-- * Whoever takes a schedule off the queue locks its row, passing over those that others have
--   locked, and waits for nobody.
-- * Whoever else changes a schedule or ends a lease has locked the execution before. So what a lease
--   brings is added by somebody who knows that it still holds.
create table schedule (
    customer_id uuid not null,
    -- Later ids sort after earlier ones: this is the order of the queue among work of the same
    -- priority, and within an execution that of its test set.
    id uuid not null,
    execution_id uuid not null,
    project_id uuid not null,
    test_report_id uuid not null,
    -- Counts the schedules of an execution, from 1.
    report_sequence_nr integer not null,
    -- The engines that it is for: those that serve the environment; empty without an environment.
    target_group text not null,
    needs_public_ip boolean not null,
    -- That of its test set: higher ones come first.
    priority smallint not null,
    status text not null,
    initial_queued_time timestamptz not null default now(),
    -- When an engine last took it.
    schedule_sent_at timestamptz,
    -- How many engines took it and were not heard of again.
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
    -- What the engine calls itself, and as whom it works.
    engine text not null,
    user_id uuid not null,
    leased_at timestamptz not null default now(),
    expires_at timestamptz not null,
    ended_at timestamptz,
    -- How it ended: by its engine, which was done (Completed) or gave the schedule back (Released);
    -- by the end of the execution (Canceled); or because nothing was heard of the engine (Lost).
    outcome text,
    constraint lease_pkey primary key (customer_id, id),
    constraint lease_schedule_fkey
        foreign key (customer_id, schedule_id) references schedule (customer_id, id),
    constraint lease_outcome_check
        check (outcome in ('Completed', 'Released', 'Canceled', 'Lost')),
    constraint lease_ended_at_check check ((ended_at is null) = (outcome is null))
);

-- Two engines never hold the same schedule.
create unique index lease_schedule_key on lease (customer_id, schedule_id) where ended_at is null;
-- For the removal of schedules, which looks for their leases.
create index lease_schedule_idx on lease (customer_id, schedule_id);
create index lease_execution_idx on lease (customer_id, execution_id) where ended_at is null;
-- Of all customers: the reconciler looks for what has expired.
create index lease_expiry_idx on lease (expires_at) where ended_at is null;
