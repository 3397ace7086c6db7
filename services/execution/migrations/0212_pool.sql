-- Pools of a project: values for variables, each of which one test at a time may use.
create table pool (
    customer_id uuid not null,
    project_id uuid not null,
    id uuid not null,
    name text not null,
    -- The values with their ids and contents. Secret contents are encrypted.
    values jsonb not null,
    -- The ids of the values, in their order, so that their contents are not read to find a free one.
    value_ids jsonb not null generated always as (jsonb_path_query_array(values, '$[*].Id')) stored,
    revision bigint not null default 1,
    constraint pool_pkey primary key (customer_id, project_id, id),
    constraint pool_name_key unique (customer_id, project_id, name),
    constraint pool_values_check check (jsonb_array_length(values) > 0)
);

-- The values of pools that were used, each with the lease of its last test. A row is replaced by the next test,
-- and says nothing once its lease has ended. So nothing has to return a value.
create table used_value (
    customer_id uuid not null,
    value_id uuid not null,
    pool_id uuid not null,
    project_id uuid not null,
    lease_id uuid not null,
    constraint used_value_pkey primary key (customer_id, value_id)
);

create index used_value_pool_idx on used_value (customer_id, pool_id);
create index used_value_lease_idx on used_value (customer_id, lease_id);
