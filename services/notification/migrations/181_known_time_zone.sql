-- Returns the name of a time zone, or `UTC` if PostgreSQL does not know it any more. Packages of time zones lose old
-- names, and a webhook with such a name must not keep the notifications of its customer from being stored.
create function known_time_zone(wanted text) returns text language plpgsql stable as $$
begin
    perform now() at time zone wanted;
    return wanted;
exception when invalid_parameter_value then
    return 'UTC';
end
$$;
