-- The end of an execution whose results are from the past, as its client states it. Null for all
-- other executions.
alter table execution add column past_end timestamptz;

-- The view has the columns that the table had when the view was created.
create or replace view live_execution as
select * from execution e
where not (select exists (
    select from deletion d
    where d.customer_id = e.customer_id
      and d.project_id in (e.project_id, '00000000-0000-0000-0000-000000000000')
));

-- Creates the partitions of the month of a time in the past, if they were dropped because its
-- executions had expired. Runs with the rights of the owner of the tables.
create function make_past_partitions(moment timestamptz) returns void language plpgsql
    security definer set search_path from current as $$
declare
    -- The partition for instances from before the first month ends with this id.
    first_id uuid := (
        select substring(pg_get_expr(relpartbound, oid) from 'TO \(''([^'']+)''\)')
        from pg_class where oid = 'instance_before'::regclass
    );
begin
    if first_id_at(date_trunc('month', moment, 'utc')) >= first_id then
        perform make_instance_partitions(date_trunc('month', moment at time zone 'utc')::date);
    end if;
end
$$;
