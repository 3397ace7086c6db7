-- The last review of a test report, and what the report was before it, so that the review can be taken back.
-- Null if it was reviewed otherwise since.
alter table test_report
    add column review_id uuid,
    add column before_review jsonb;

-- The review that has muted the cause, and what the known failure was before it. Null before, if the review has
-- created it. Both are null once a user has changed it.
alter table known_failure
    add column review_id uuid,
    add column before_review jsonb;
