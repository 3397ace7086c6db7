-- Identifies the last attempt. One that was taken for ended, because its program was frozen, and comes to
-- an end later, records nothing.
alter table unfinished_work add column token uuid;
