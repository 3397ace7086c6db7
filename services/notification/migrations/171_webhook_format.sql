-- How the messages of a webhook are written, and when they are sent.
alter table webhook
    add column format text not null default 'CloudEvents',
    add column batch_size int not null default 1,
    add column batch_window_in_sec int not null default 5,
    add column digest text not null default 'None',
    -- Times of day as `HH:MM`, both or none.
    add column quiet_from text,
    add column quiet_until text,
    add column time_zone text not null default 'UTC';
