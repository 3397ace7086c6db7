-- The sentence that explains the change of a report. Empty for one without a change.
alter table test_report add column change_reason text not null default '';

alter table test_report drop constraint test_report_change_check;
alter table test_report add constraint test_report_change_check
    check (change in ('None', 'New', 'Still', 'CauseChanged', 'Fixed', 'Flaky')) not valid;
