-- How often a program has begun to store the results of a launch since one of them came to an end with
-- it. It counts what a program could not record because it did not survive.
alter table launch add column taken integer not null default 0;
