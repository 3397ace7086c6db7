-- Events of clients have names of their own, `Client.Source.Action`. Patterns that can select nothing of Assay
-- selected those of clients.
update webhook
set events = array(
    select case
        when event = '*'
             or event not like '%.%.%'
             and split_part(event, '.', 2) in ('*', 'Created', 'Changed', 'Archived', 'Unarchived', 'Deleted',
                 'Disabled', 'Requested', 'Completed', 'Canceled', 'Finished', 'Reviewed', 'Expired', 'Alarmed',
                 'Recovered', 'Ended')
             and split_part(event, '.', 1) in ('*', 'Customer', 'UserGroup', 'User', 'Project', 'TestCase', 'TestPlan',
                 'TestSet', 'Subject', 'Environment', 'KnownFailure', 'CauseRule', 'TestCaseState', 'Monitor',
                 'Incident', 'Execution', 'Webhook')
        then event else 'Client.' || event end
    from unnest(events) as event
    order by 1
)
where deleted_at is null;
