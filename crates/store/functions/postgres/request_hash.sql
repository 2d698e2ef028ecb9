-- What is hashed of a submit with an idempotency key, byte for byte as nodes hash it.

-- Length first, so that no two sequences of strings hash alike.
CREATE OR REPLACE FUNCTION duly.sized(bytes bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT int8send(octet_length(bytes)) || bytes
$$;

CREATE OR REPLACE FUNCTION duly.sized(value text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT duly.sized(convert_to(value, 'UTF8'))
$$;

-- A number of 128 bits.
CREATE OR REPLACE FUNCTION duly.wide(number bigint) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT int8send(0) || int8send(number)
$$;

-- What is hashed of a JSON value: everything but the order of keys and white space. Of duplicate keys the
-- last one counts.
CREATE OR REPLACE FUNCTION duly.meaning(value json) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    inside bytea;
BEGIN
    CASE json_typeof(value)
    WHEN 'object' THEN
        SELECT string_agg(duly.sized(f.key) || duly.meaning(f.value), '' ORDER BY f.key COLLATE "C")
        INTO inside
        FROM (SELECT DISTINCT ON (e.key) e.key, e.value
              FROM json_each(value) WITH ORDINALITY e(key, value, n)
              ORDER BY e.key, e.n DESC) f;
        RETURN '{'::bytea || coalesce(inside, '') || '}'::bytea;
    WHEN 'array' THEN
        SELECT string_agg(duly.meaning(e.value), '' ORDER BY e.n) INTO inside
        FROM json_array_elements(value) WITH ORDINALITY e(value, n);
        RETURN '['::bytea || coalesce(inside, '') || ']'::bytea;
    WHEN 'string' THEN
        RETURN 's'::bytea || duly.sized(value #>> '{}');
    ELSE
        RETURN 'v'::bytea || duly.sized(btrim(value::text, E' \t\n\r'));
    END CASE;
END
$$;

-- What is hashed of labels, in the order in which tasks keep them.
CREATE OR REPLACE FUNCTION duly.meaning_of_labels(labels text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT int8send(count(*))
           || coalesce(string_agg(duly.sized(l.key) || duly.sized(l.value), '' ORDER BY l.n), '')
    FROM json_each_text(labels::json) WITH ORDINALITY l(key, value, n)
$$;
