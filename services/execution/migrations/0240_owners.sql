-- Returns the owners of a test: the values of its labels `owner`, each once, in one order, at most ten.
create function owners_of(labels jsonb) returns text[] language sql immutable strict parallel safe as $$
    select array(
        select distinct (label->>'Value') collate "C" as owner
        from jsonb_array_elements(labels) as label
        where lower((label->>'Name') collate "C") = 'owner' and label->>'Value' <> ''
        order by owner
        limit 10
    )
$$;
