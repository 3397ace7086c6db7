-- References of records to files. A file with a reference cannot be deleted.
create table file_reference (
    customer_id uuid not null,
    file_id uuid not null,
    -- Noun of the record: subject, environment or test plan.
    noun text not null,
    record_id uuid not null,
    -- Field of the record, as in JSON.
    field text not null,
    constraint file_reference_pkey primary key (customer_id, record_id, field),
    constraint file_reference_file_id_fkey foreign key (customer_id, file_id) references file
);

create index file_reference_file_idx on file_reference (customer_id, file_id);
