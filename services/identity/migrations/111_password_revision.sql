-- Grows with every new password; not when the hash of the same password is made anew.
alter table account add column password_revision bigint not null default 1;
