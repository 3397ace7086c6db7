-- The price of an hour of execution, for monthly statements. Null if they have no amounts.
alter table customer
    add column price_per_hour double precision,
    add constraint customer_price_per_hour_check check (price_per_hour >= 0)
