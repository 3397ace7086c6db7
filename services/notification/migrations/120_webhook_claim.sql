-- Identifies the round that has claimed the webhook. A round whose claim was taken over, because its
-- program was frozen, records nothing.
alter table webhook add column claim uuid;
