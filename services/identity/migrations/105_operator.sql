-- The operator's customer, whose administrators manage the others. There is always one.
alter table customer add column is_operator boolean not null default false;

update customer set is_operator = true
where id = (select id from customer order by created_at, id limit 1);

create unique index customer_is_operator_key on customer (is_operator) where is_operator;

create unique index user_group_name_key on user_group (customer_id, lower(name))
where deleted_at is null;
