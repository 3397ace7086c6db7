-- No query uses it: the last id of a deleted notification is found by notification_deleted_id_idx.
drop index notification_deleted_idx;
