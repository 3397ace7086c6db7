-- The user who has reviewed a test report last, and the time. Null before its first review.
alter table test_report
    add column reviewed_by_id uuid,
    add column reviewed_by text,
    add column review_time timestamptz;
