-- Launches that agents of ReportPortal report. The row exists from the first request on, which may
-- arrive before the launch starts, until a week after the end.
create table launch (
    customer_id uuid not null,
    id uuid not null,
    -- The number by which some agents refer to the launch. It follows from the id.
    number bigint not null,
    -- The execution; null before the launch starts.
    project_id uuid,
    execution_id uuid,
    -- The agent, which decides how scenarios are read.
    agent text not null default '',
    finished_at timestamptz,
    -- The time from which its results are stored, unless requests arrive before; after its end, the
    -- time from which late requests are stored. Null if nothing is to be done.
    due_at timestamptz,
    -- The end of the lease of the program that stores its results.
    leased_until timestamptz,
    -- Whether the catalog has to adopt test cases, which needs the token of a caller.
    needs_caller boolean not null default false,
    -- The end, and the last request before it.
    ended_at timestamptz,
    last_sequence bigint,
    constraint launch_pkey primary key (customer_id, id),
    constraint launch_execution_check check ((project_id is null) = (execution_id is null)),
    constraint launch_last_sequence_check check ((ended_at is null) = (last_sequence is null))
);

create index launch_number_idx on launch (customer_id, number);
create index launch_execution_idx on launch (customer_id, execution_id);
create index launch_needs_caller_idx on launch (customer_id) where needs_caller;

-- For the task that stores results and removes old launches, over all customers.
create index launch_due_idx on launch (due_at) where due_at is not null;
create index launch_leased_idx on launch (leased_until) where leased_until is not null;
create index launch_ended_idx on launch (ended_at) where due_at is null;

-- The requests of launches whose results are not stored yet.
create table launch_request (
    customer_id uuid not null,
    launch_id uuid not null,
    sequence bigint not null generated always as identity,
    kind text not null,
    -- The item of a request; none of a log of the launch. The artifact of a file.
    item_id uuid,
    -- The parent of an item that starts.
    parent_id uuid,
    -- The JSON of the agent; the contents of a file.
    body bytea not null,
    -- The name and the media type of a file.
    file_name text,
    content_type text,
    constraint launch_request_pkey primary key (customer_id, launch_id, sequence),
    constraint launch_request_kind_check check (kind in ('Start', 'Finish', 'Log', 'File'))
);

-- The files of launches, which become artifacts.
create index launch_request_file_idx on launch_request (customer_id, launch_id, sequence)
    where kind = 'File';
