-- Time of the last attempts that counted for the health of the receiver. A failure after a long time without any does
-- not continue an earlier one.
alter table webhook add column attempted_at timestamptz;
