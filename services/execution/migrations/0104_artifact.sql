-- Artifacts: files that belong to results. The files are in a separate store, under the ids of the
-- customer, the execution and the artifact. Their names are only here.
create table artifact (
    customer_id uuid not null,
    id uuid not null,
    execution_id uuid not null,
    -- The record in which the name is unique: the execution if its client reports the results, the
    -- test report if an engine does.
    owner_id uuid not null,
    name text not null,
    content_type text not null,
    size bigint not null,
    uploaded_at timestamptz not null default now(),
    constraint artifact_pkey primary key (customer_id, id),
    constraint artifact_name_key unique (customer_id, owner_id, name),
    constraint artifact_execution_fkey
        foreign key (customer_id, execution_id) references execution (customer_id, id)
);

create index artifact_execution_idx on artifact (customer_id, execution_id);

-- Files that are being stored or removed: inserted before and deleted after. A program that ended
-- in between leaves a row, and the file is removed later.
create table stray_file (
    customer_id uuid not null,
    execution_id uuid not null,
    artifact_id uuid not null,
    since timestamptz not null default now(),
    constraint stray_file_pkey primary key (customer_id, artifact_id)
);

-- For the removal of abandoned files, over all customers.
create index stray_file_since_idx on stray_file (since);
