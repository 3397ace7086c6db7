-- Whether the end of a known failure was published.
alter table known_failure add column is_expired boolean not null default false;
update known_failure set is_expired = true where muted_until <= now();

-- For the publication of ends, over all customers.
create index known_failure_expiry_idx on known_failure (muted_until) where not is_expired;
