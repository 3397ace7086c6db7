-- Bytes that clients of a customer have left behind, by kind. A row is a change, and the sum of the rows
-- is what is stored; a task of the service adds rows up. So transactions of one customer do not wait for
-- each other.
create table usage (
    customer_id uuid not null,
    -- `staged`: requests of launches. `artifacts`: files. `keys`: idempotency keys with their requests, and
    -- digests of reports.
    kind text not null,
    bytes bigint not null
);

create index usage_customer_id_kind_idx on usage (customer_id, kind) include (bytes);

create function count_staged() returns trigger language plpgsql as $$
begin
    insert into usage
    select customer_id, 'staged',
           sum(octet_length(body)) * case when tg_op = 'INSERT' then 1 else -1 end
    from changed group by customer_id;
    return null;
end
$$;

create trigger launch_request_inserted after insert on launch_request
    referencing new table as changed for each statement execute function count_staged();
create trigger launch_request_deleted after delete on launch_request
    referencing old table as changed for each statement execute function count_staged();

create function count_artifacts() returns trigger language plpgsql as $$
begin
    insert into usage
    select customer_id, 'artifacts', sum(size) * case when tg_op = 'INSERT' then 1 else -1 end
    from changed group by customer_id;
    return null;
end
$$;

create trigger artifact_inserted after insert on artifact
    referencing new table as changed for each statement execute function count_artifacts();
create trigger artifact_deleted after delete on artifact
    referencing old table as changed for each statement execute function count_artifacts();

create function count_uploads() returns trigger language plpgsql as $$
begin
    insert into usage
    select customer_id, 'keys',
           sum(octet_length(digest)) * case when tg_op = 'INSERT' then 1 else -1 end
    from changed group by customer_id;
    return null;
end
$$;

create trigger upload_inserted after insert on upload
    referencing new table as changed for each statement execute function count_uploads();
create trigger upload_deleted after delete on upload
    referencing old table as changed for each statement execute function count_uploads();

-- Most executions have a key, and each is inserted, cleared or deleted alone.
create function count_key() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' then
        insert into usage values (old.customer_id, 'keys',
            -(octet_length(old.idempotency_key) + octet_length(old.idempotent_request)));
    else
        insert into usage values (new.customer_id, 'keys',
            octet_length(new.idempotency_key) + octet_length(new.idempotent_request));
    end if;
    return null;
end
$$;

create trigger execution_key_inserted after insert on execution
    for each row when (new.idempotency_key is not null) execute function count_key();
create trigger execution_key_cleared after update of idempotency_key on execution
    for each row when (old.idempotency_key is not null and new.idempotency_key is null)
    execute function count_key();
create trigger execution_key_deleted after delete on execution
    for each row when (old.idempotency_key is not null) execute function count_key();

insert into usage
select customer_id, 'staged', sum(octet_length(body)) from launch_request group by customer_id
union all
select customer_id, 'artifacts', sum(size) from artifact group by customer_id
union all
select customer_id, 'keys', sum(octet_length(digest)) from upload group by customer_id
union all
select customer_id, 'keys', sum(octet_length(idempotency_key) + octet_length(idempotent_request))
from execution where idempotency_key is not null group by customer_id;

-- The executions of a customer that have not ended.
create index execution_unfinished_idx on execution (customer_id) where status in ('Queued', 'Running');
