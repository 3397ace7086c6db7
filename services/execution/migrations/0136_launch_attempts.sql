-- Attempts to store the results of a launch are counted in `unfinished_work`.
alter table launch drop column failures, drop column if exists taken;
