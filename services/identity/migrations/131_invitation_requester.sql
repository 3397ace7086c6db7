-- The user who has requested the invitation, who may visit from another customer. A change of address
-- is accepted only as long as this user may still request it. Null for the first administrator.
alter table invitation add column requested_by uuid;
