-- Uploads of files in several requests. An upload whose last byte has arrived keeps its row until it expires, so
-- that a client whose connection has broken finds the file.
create table upload (
    customer_id uuid not null,
    id uuid not null,
    project_id uuid not null,
    name text not null,
    content_type text not null,
    -- As the client has sent them.
    metadata text not null,
    -- SHA-256 that the file must have, if the client has sent one.
    sha256 bytea,
    -- Size of the file, in bytes; null until the client has announced it.
    size bigint,
    -- Number of bytes that are stored. It is the size only if there is a file.
    received bigint not null default 0,
    -- Number of bytes that count against the quota until there is a file: the size, or what has arrived without one.
    claimed bigint not null default 0,
    -- File that the upload has become. It may have been deleted since.
    file_id uuid,
    -- Request that appends to the upload, if there is one. It renews the time.
    writer_id uuid,
    written_at timestamptz,
    expires_at timestamptz not null,
    constraint upload_pkey primary key (customer_id, id),
    constraint upload_project_id_fkey foreign key (customer_id, project_id) references project
);

create index upload_project_idx on upload (customer_id, project_id);

-- For the number and the size of the uploads of a customer that are not complete.
create index upload_incomplete_idx on upload (customer_id) include (claimed) where file_id is null;

-- For the removal of expired uploads, over all customers.
create index upload_expires_at_idx on upload (expires_at);

-- Parts of uploads, in the store under the ids of contents.
create table upload_part (
    customer_id uuid not null,
    upload_id uuid not null,
    -- Position of the first byte of the part in the file.
    position bigint not null,
    content_id uuid not null,
    constraint upload_part_pkey primary key (customer_id, upload_id, position),
    constraint upload_part_upload_id_fkey foreign key (customer_id, upload_id) references upload
);
