-- Environments: where the software is tested.
create table environment (
    customer_id uuid not null,
    id uuid not null,
    project_id uuid not null,
    name text not null,
    image_file_id text,
    contained_subject uuid,
    image_file_size bigint not null,
    modification_allowed boolean not null,
    target_group text not null,
    file_project_id text not null,
    username text not null,
    -- Encrypted; empty where there is none.
    password text not null,
    archived boolean not null default false,
    revision bigint not null default 1,
    created_at timestamptz not null default now(),
    deleted_at timestamptz,
    live boolean not null generated always as (not archived and deleted_at is null) stored,
    constraint environment_pkey primary key (customer_id, id),
    constraint environment_project_id_fkey
        foreign key (customer_id, project_id) references project,
    constraint environment_contained_subject_fkey
        foreign key (customer_id, contained_subject) references subject
);

create index environment_live_idx on environment (customer_id, project_id, id) where live;
create index environment_archive_idx on environment (customer_id, project_id, id)
    where archived and deleted_at is null;
create index environment_deleted_idx on environment (customer_id, project_id, id)
    where deleted_at is not null;
-- What refers to a subject, for its deletion.
create index environment_contained_subject_idx on environment (customer_id, contained_subject)
    where contained_subject is not null;
