-- The URL of the tickets of a project, in which {ticket} stands for the name of one.
alter table project add column ticket_url text not null default '';
