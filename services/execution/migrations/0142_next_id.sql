-- Returns the id of a new record. Its time is that of the database, or just after that of the last
-- record that it follows, so that the order of ids does not depend on the clocks of programs.
create function next_id(last uuid) returns uuid language sql volatile as $$
    select overlay(gen_random_uuid()::text
               placing left(first_id_at(greatest(
                   clock_timestamp(),
                   to_timestamp((('x' || left(replace(last::text, '-', ''), 12))::bit(48)::bigint + 1)
                       / 1000.0)
               ))::text, 14) || '7' from 1 for 15)::uuid
$$;
