-- How often a round of the webhook has begun since one came to an end.
alter table webhook add column taken int not null default 0;
