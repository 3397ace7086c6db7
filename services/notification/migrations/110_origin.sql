-- Whether Assay or a client has created a notification. Those of earlier releases count as made by
-- clients, because nobody knows it.
alter table notification
    add column origin text not null default 'Client'
        constraint notification_origin_check check (origin in ('Assay', 'Client'));
