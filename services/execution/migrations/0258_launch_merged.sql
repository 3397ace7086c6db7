-- The launch that this one was merged into. It gets the late requests of this one.
alter table launch add column merged_into uuid;
