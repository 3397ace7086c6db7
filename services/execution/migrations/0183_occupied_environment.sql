-- The exclusive environments, each with the lease of its last test. A row is replaced by the next test, and
-- says nothing once its lease has ended. So nothing has to free an environment.
create table occupied_environment (
    customer_id uuid not null,
    environment_id uuid not null,
    project_id uuid not null,
    lease_id uuid not null,
    constraint occupied_environment_pkey primary key (customer_id, environment_id)
);

create index occupied_environment_lease_idx on occupied_environment (customer_id, lease_id);
