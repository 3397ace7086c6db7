-- The mails of each customer in the order in which they are sent: first links for new passwords,
-- last reports of executions.
create index mail_turn_idx on mail (
    (coalesce(customer_id, '00000000-0000-0000-0000-000000000000'::uuid)),
    (case kind when 'PasswordReset' then 0 when 'ExecutionEnded' then 2 else 1 end),
    next_attempt_at
);
