-- Subjects: the software under test.
create table subject (
    customer_id uuid not null,
    id uuid not null,
    project_id uuid not null,
    identifier text not null,
    name text not null,
    uri text not null,
    subject_type text not null,
    needs_public_ip boolean not null,
    software_file_id text,
    software_file_name text,
    software_file_size bigint not null,
    installation_file_id text,
    installation_file_name text,
    instruction_file_id text,
    instruction_file_name text,
    framework_file_id text,
    modification_allowed boolean not null,
    base_subject_id uuid,
    -- The contents of secured ones are encrypted.
    variables jsonb not null default '[]',
    archived boolean not null default false,
    revision bigint not null default 1,
    created_at timestamptz not null default now(),
    deleted_at timestamptz,
    live boolean not null generated always as (not archived and deleted_at is null) stored,
    -- From the execution service, with the execution that it is of.
    pass_rate double precision not null default 0,
    pass_rate_execution_id uuid not null default '00000000-0000-0000-0000-000000000000',
    pass_rate_revision bigint not null default 0,
    constraint subject_pkey primary key (customer_id, id),
    constraint subject_project_id_fkey foreign key (customer_id, project_id) references project,
    constraint subject_base_subject_id_fkey
        foreign key (customer_id, base_subject_id) references subject,
    constraint subject_subject_type_check
        check (subject_type in ('Webpage', 'RequiresInstallation'))
);

create index subject_live_idx on subject (customer_id, project_id, id) where live;
create index subject_archive_idx on subject (customer_id, project_id, id)
    where archived and deleted_at is null;
create index subject_deleted_idx on subject (customer_id, project_id, id)
    where deleted_at is not null;
-- What refers to a subject, for its deletion.
create index subject_base_subject_idx on subject (customer_id, base_subject_id)
    where base_subject_id is not null;
