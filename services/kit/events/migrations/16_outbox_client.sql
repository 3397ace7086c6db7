-- Id of the user whose client has created the event; null for those of Assay. It becomes a part of the event's
-- source.
alter table outbox add column client_id uuid;
