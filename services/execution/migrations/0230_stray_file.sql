-- Whether a file is being removed. It cannot become an artifact any more. An upload may take longer than the hour
-- after which its file counts as abandoned; it renews `since` in the meantime.
alter table stray_file add column is_removed boolean not null default false;

-- Room that the file takes in the quota until it is an artifact, in bytes.
alter table stray_file add column size bigint not null default 0;
