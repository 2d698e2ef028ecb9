-- The store's clock, in milliseconds since 1970. Tests set their own on their connections.
CREATE OR REPLACE FUNCTION duly.now() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT coalesce(nullif(current_setting('duly.now_ms', true), '')::bigint,
                    floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
$$;

-- The lowest id that a task first due at this time could have.
CREATE OR REPLACE FUNCTION duly.first_id(at bigint) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (lpad(to_hex(at), 12, '0') || repeat('0', 20))::uuid
$$;

-- The day on which a task of this id was first due, counted from 1970.
CREATE OR REPLACE FUNCTION duly.day_of(id uuid) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / 86400000
$$;

-- A new id that begins with the task's first due time, as nodes make them: 48 bits of time, 20 that
-- count, so that tasks of one millisecond sort as they were submitted, and 54 random ones.
CREATE OR REPLACE FUNCTION duly.mint(first_due bigint) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    number constant integer := nextval('duly.ordinal');
    random constant text    := replace(gen_random_uuid()::text, '-', '');
BEGIN
    RETURN (lpad(to_hex(first_due), 12, '0') || '7' || lpad(to_hex(number >> 8), 3, '0')
            || to_hex(128 | ((number & 255) >> 2))
            || lpad(to_hex(((number & 3) << 6) | (('x' || substr(random, 19, 2))::bit(8)::integer & 63)),
                    2, '0')
            || substr(random, 21))::uuid;
END
$$;
