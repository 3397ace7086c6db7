-- Rules of a project for the causes of its failures.
create table cause_rule (
    customer_id uuid not null,
    id uuid not null,
    project_id uuid not null,
    -- A regular expression for text that does not count. Null for a rule that joins two causes.
    pattern text,
    -- Failures with this fingerprint get the other one. Null for a rule with a pattern.
    fingerprint bytea,
    same_as bytea,
    -- The lines that state both causes, from which their fingerprints follow when patterns have changed.
    lines text[],
    same_lines text[],
    -- The messages of both in a few lines.
    headline text,
    same_headline text,
    comment text not null,
    created_by_id uuid not null,
    created_by text not null,
    created_at timestamptz not null default now(),
    constraint cause_rule_pkey primary key (customer_id, id),
    constraint cause_rule_pattern_key unique (customer_id, project_id, pattern),
    constraint cause_rule_fingerprint_key unique (customer_id, project_id, fingerprint),
    constraint cause_rule_kind_check check (
        (pattern is null) = (fingerprint is not null) and (fingerprint is null) = (same_as is null)
    )
);

create index cause_rule_project_idx on cause_rule (customer_id, project_id, id);

-- Projects whose rules have changed, so that the causes of their failures are derived again.
create table changed_causes (
    customer_id uuid not null,
    project_id uuid not null,
    -- The executions before this one are still to do, the latest first.
    before uuid not null default 'ffffffff-ffff-ffff-ffff-ffffffffffff',
    -- Transactions before this one may have read the rules before they were changed. It is noted after the
    -- change, and nothing is derived until they have ended.
    horizon xid8,
    constraint changed_causes_pkey primary key (customer_id, project_id)
);
