-- Contents of files, each once in a project. The bytes are in a separate store, under the ids of the customer,
-- the project and the contents. Files have their names.
create table content (
    customer_id uuid not null,
    id uuid not null,
    project_id uuid not null,
    sha256 bytea not null,
    size bigint not null,
    constraint content_pkey primary key (customer_id, id),
    constraint content_sha256_key unique (customer_id, project_id, sha256),
    constraint content_project_id_fkey foreign key (customer_id, project_id) references project
);

-- The sum of the sizes of a customer, for its quota.
create index content_size_idx on content (customer_id) include (size);

-- Files of a project, which records refer to.
create table file (
    customer_id uuid not null,
    id uuid not null,
    project_id uuid not null,
    content_id uuid not null,
    name text not null,
    content_type text not null,
    -- Display name of the user.
    created_by text not null,
    created_at timestamptz not null default now(),
    constraint file_pkey primary key (customer_id, id),
    constraint file_project_id_fkey foreign key (customer_id, project_id) references project,
    constraint file_content_id_fkey foreign key (customer_id, content_id) references content
);

create index file_project_idx on file (customer_id, project_id, id);
create index file_content_idx on file (customer_id, content_id);

-- Bytes that are being stored or removed: inserted before and deleted after. A program that ended in between
-- leaves a row, and the bytes are removed later.
create table stray_content (
    customer_id uuid not null,
    -- The project, which may be gone.
    folder_id uuid not null,
    content_id uuid not null,
    -- Size that the client has announced, in bytes; for the quota.
    size bigint not null,
    -- An upload in progress renews it.
    touched_at timestamptz not null default now(),
    -- Whether the bytes are being removed. They cannot become those of a file any more.
    is_removed boolean not null default false,
    constraint stray_content_pkey primary key (customer_id, content_id)
);

-- For the removal of abandoned bytes, over all customers.
create index stray_content_touched_at_idx on stray_content (touched_at);
