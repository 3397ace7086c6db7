//! The customers and projects that this service has data of, for the search for lost deletions.

/// The next customers, with the nil UUID as project. Each step of the recursion is an index lookup, however
/// many executions a customer has.
pub const CUSTOMERS: &str = "
    with recursive customer (id) as (
        (select customer_id from execution where customer_id > $1 order by 1 limit 1)
        union all
        select (select customer_id from execution where customer_id > customer.id order by 1 limit 1)
        from customer where customer.id is not null
    )
    select id as customer_id, '00000000-0000-0000-0000-000000000000'::uuid as project_id
    from customer
    where id is not null and $2::uuid is not null and not exists (
        select from deletion d
        where d.customer_id = customer.id
          and d.project_id = '00000000-0000-0000-0000-000000000000'
    )
    limit $3";

/// The next projects of customers. Active and archived executions have an index each. A project may have pools
/// with secrets, or monitors, before its first execution.
pub const PROJECTS: &str = "
    with recursive active (customer_id, project_id) as (
        (select customer_id, project_id from execution
         where not archived and (customer_id, project_id) > ($1, $2)
         order by customer_id, project_id limit 1)
        union all
        select next.* from active cross join lateral (
            select customer_id, project_id from execution e
            where not archived
              and (e.customer_id, e.project_id) > (active.customer_id, active.project_id)
            order by customer_id, project_id limit 1
        ) as next
    ), archived (customer_id, project_id) as (
        (select customer_id, project_id from execution
         where archived and (customer_id, project_id) > ($1, $2)
         order by customer_id, project_id limit 1)
        union all
        select next.* from archived cross join lateral (
            select customer_id, project_id from execution e
            where archived
              and (e.customer_id, e.project_id) > (archived.customer_id, archived.project_id)
            order by customer_id, project_id limit 1
        ) as next
    ), known as (
        (select * from active limit $3)
        union
        (select * from archived limit $3)
        union
        (select customer_id, project_id from retention
         where (customer_id, project_id) > ($1, $2)
         order by customer_id, project_id limit $3)
        union
        (select distinct customer_id, project_id from pool
         where (customer_id, project_id) > ($1, $2)
         order by customer_id, project_id limit $3)
        union
        (select distinct customer_id, project_id from monitor
         where (customer_id, project_id) > ($1, $2)
         order by customer_id, project_id limit $3)
    )
    select customer_id, project_id from known
    where not exists (
        select from deletion d
        where d.customer_id = known.customer_id
          and d.project_id in (known.project_id, '00000000-0000-0000-0000-000000000000')
    )
    order by customer_id, project_id
    limit $3";
