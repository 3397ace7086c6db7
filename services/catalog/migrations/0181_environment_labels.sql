-- Labels that engines have to offer in addition to the target group, and whether only one test at a time may use
-- the environment.
alter table environment
    add column labels text[] not null default '{}',
    add column exclusive boolean not null default false;
