-- The name of a type or a queue: upper and lower case are told apart. A tenant has a rule of its own.
CREATE OR REPLACE FUNCTION duly.check_name(argument text, name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF name IS NULL THEN
        PERFORM duly.refuse(argument, 'REQUIRED', 'is required');
    ELSIF argument = 'tenant' AND name COLLATE "C" !~ '^[a-z0-9][a-z0-9._-]{0,99}$' THEN
        PERFORM duly.refuse(argument, 'INVALID_NAME', 'must match [a-z0-9][a-z0-9._-]{0,99}');
    ELSIF name COLLATE "C" !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$' THEN
        PERFORM duly.refuse(argument, 'INVALID_NAME', 'must match [A-Za-z0-9][A-Za-z0-9._-]{0,99}');
    ELSIF starts_with(lower(name COLLATE "C"), 'duly.') THEN
        PERFORM duly.refuse(argument, 'INVALID_NAME',
                            'must not begin with `duly.`, in any case, which is for the system''s own tasks');
    END IF;
END
$$;
