-- Fields that not every notification has, by their names in the interface: those of the project, the execution
-- and the result that it is about, and its actor.
alter table notification add column details jsonb not null default '{}';
