-- Incidents: outages, and causes that appear in most test sets of a project within minutes.
create table incident (
    customer_id uuid not null,
    id uuid not null,
    project_id uuid not null,
    kind text not null,
    -- The cause, or the most frequent one of the first execution of an outage. Null if no failure has a
    -- message.
    fingerprint bytea,
    headline text not null,
    -- The times when the first and the latest affected execution were requested.
    begun_at timestamptz not null,
    last_seen_at timestamptz not null,
    -- The end of the first execution of an affected test set without it, and that execution.
    ended_at timestamptz,
    ended_by_execution_id uuid,
    -- The numbers of affected executions and test sets.
    executions integer not null default 0,
    test_sets integer not null default 0,
    constraint incident_pkey primary key (customer_id, id),
    constraint incident_kind_check check (kind in ('Outage', 'Cause'))
);

create index incident_project_idx on incident (customer_id, project_id, id);
-- The incidents of a time: those that have not ended before.
create index incident_end_idx
    on incident (customer_id, project_id, (coalesce(ended_at, 'infinity')));

-- The executions that an incident affects.
create table incident_execution (
    customer_id uuid not null,
    incident_id uuid not null,
    execution_id uuid not null,
    test_set_id uuid not null,
    constraint incident_execution_pkey primary key (customer_id, incident_id, execution_id),
    constraint incident_execution_incident_fkey
        foreign key (customer_id, incident_id) references incident (customer_id, id) on delete cascade
);

-- The incidents of an execution.
create index incident_execution_execution_idx on incident_execution (customer_id, execution_id);

-- The completed executions in which incidents are still to be sought.
create table incident_search (
    customer_id uuid not null,
    execution_id uuid not null,
    constraint incident_search_pkey primary key (customer_id, execution_id)
);
