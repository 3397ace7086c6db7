-- Files of launches count as artifacts from when they are staged, so that they claim their room before the launch is
-- over. They also count as requests while they are in the database.
do $migration$
begin
    -- Neither release adds or removes a request between the count of those that are there and the new function.
    lock table launch_request in share row exclusive mode;

    create or replace function count_staged() returns trigger language plpgsql as $$
    begin
        insert into usage
        select customer_id, counted.kind,
               sum(octet_length(body)) * case when tg_op = 'INSERT' then 1 else -1 end
        from changed
        join (values ('staged'), ('artifacts')) as counted (kind)
            on counted.kind = 'staged' or changed.kind = 'File'
        group by customer_id, counted.kind;
        return null;
    end
    $$;

    insert into usage
    select customer_id, 'artifacts', sum(octet_length(body)) from launch_request
    where kind = 'File' group by customer_id;
end
$migration$;
