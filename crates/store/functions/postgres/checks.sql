-- The arguments of applications are checked here as the HTTP interface checks its own: the same bounds,
-- the same codes.

-- Raises an error about an argument. A driver shows the argument as the name of a column and the code as
-- that of a constraint.
CREATE OR REPLACE FUNCTION duly.refuse(argument text, code text, detail text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = argument || ' ' || detail,
                          COLUMN = argument, CONSTRAINT = code;
END
$$;

-- The name of a type or a queue, which is case-sensitive. A tenant has its own rule.
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

-- Whether a text holds a control character.
CREATE OR REPLACE FUNCTION duly.has_controls(value text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT value ~ E'[\u0001-\u001f\u007f-\u009f]'
$$;

CREATE OR REPLACE FUNCTION duly.check_whole(argument text, value integer, most integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF value NOT BETWEEN 0 AND most THEN
        PERFORM duly.refuse(argument, 'OUT_OF_RANGE', 'must be a whole number from 0 to ' || most);
    END IF;
END
$$;

-- Seconds as milliseconds, rounded up: nothing starts before the time that was asked for.
CREATE OR REPLACE FUNCTION duly.millis(argument text, seconds numeric, most integer) RETURNS bigint
LANGUAGE plpgsql STRICT AS $$
BEGIN
    IF seconds NOT BETWEEN 0 AND most THEN
        PERFORM duly.refuse(argument, 'OUT_OF_RANGE', format('must be 0 to %s seconds', most));
    END IF;
    RETURN greatest(0, ceil(seconds * 1000 - 0.000001));
END
$$;

-- Well-formed JSON can still be too large, too deep, or hold characters that no text can.
CREATE OR REPLACE FUNCTION duly.check_json(argument text, value text, most integer, too_large text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    depth   constant integer := 64;
    outline text;
    escapes text;
BEGIN
    IF octet_length(value) > most THEN
        PERFORM duly.refuse(argument, too_large,
                            format('is %s bytes; the limit is %s', octet_length(value), most));
    END IF;
    -- A value with fewer brackets is not nested deeper.
    IF length(value) - length(translate(value, '[{', '')) > depth THEN
        outline := regexp_replace(value, '"([^"\\]|\\.)*"', '', 'g');
        outline := regexp_replace(outline, '[^][{}]+', '', 'g');
        -- Each turn removes the innermost pairs, one level.
        FOR level IN 1 .. depth LOOP
            EXIT WHEN outline = '';
            outline := regexp_replace(outline, '\[\]|\{\}', '', 'g');
        END LOOP;
        IF outline <> '' THEN
            PERFORM duly.refuse(argument, 'TOO_DEEP', format('is nested deeper than %s levels', depth));
        END IF;
    END IF;
    IF position('\u' IN value) > 0 THEN
        -- Without escaped backslashes, every remaining one begins an escape.
        escapes := replace(value, '\\', ' ');
        IF position('\u0000' IN escapes) > 0 THEN
            PERFORM duly.refuse(argument, 'NUL_CHARACTER', 'contains the character U+0000');
        END IF;
        escapes := regexp_replace(
            escapes, '\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}', ' ', 'g');
        IF escapes ~ '\\u[dD][89a-fA-F]' THEN
            PERFORM duly.refuse(argument, 'INVALID_UNICODE',
                                'holds half of a surrogate pair, which is no character');
        END IF;
    END IF;
END
$$;

-- Labels as tasks store them: JSON text, sorted by the bytes of the keys; NULL for none.
CREATE OR REPLACE FUNCTION duly.labels(labels jsonb) RETURNS text LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    many  bigint;
    label record;
    kept  text;
BEGIN
    IF labels IS NULL OR labels = 'null' THEN
        RETURN NULL;
    ELSIF jsonb_typeof(labels) <> 'object' THEN
        PERFORM duly.refuse('labels', 'WRONG_TYPE', 'must be an object of strings');
    END IF;
    SELECT count(*) INTO many FROM jsonb_object_keys(labels);
    IF many > 32 THEN
        PERFORM duly.refuse('labels', 'TOO_MANY', format('holds %s labels; the limit is 32', many));
    END IF;
    FOR label IN
        SELECT l.key, l.value, l.value #>> '{}' AS text
        FROM jsonb_each(labels) l ORDER BY l.key COLLATE "C"
    LOOP
        IF jsonb_typeof(label.value) <> 'string' THEN
            PERFORM duly.refuse('labels', 'WRONG_TYPE', 'must be an object of strings');
        ELSIF lower(left(label.key, 5)) = 'duly.' THEN
            PERFORM duly.refuse('labels', 'INVALID_LABEL',
                format('must not begin with `duly.`, as %s does', label.key));
        ELSIF length(label.key) NOT BETWEEN 1 AND 200 OR length(label.text) > 200
              OR duly.has_controls(label.key) OR duly.has_controls(label.text) THEN
            PERFORM duly.refuse('labels', 'INVALID_LABEL',
                'have keys and values of at most 200 characters, keys of at least one, and no '
                || 'control characters');
        END IF;
        kept := concat_ws(',', kept, to_json(label.key)::text || ':' || to_json(label.text)::text);
    END LOOP;
    RETURN '{' || kept || '}';
END
$$;

-- The string or number in a field of a back-off; NULL if it is absent.
CREATE OR REPLACE FUNCTION duly.field(asked jsonb, name text, wanted text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    IF jsonb_typeof(asked -> name) NOT IN (wanted, 'null') THEN
        PERFORM duly.refuse('backoff.' || name, 'WRONG_TYPE', 'must be a ' || wanted);
    END IF;
    RETURN asked ->> name;
END
$$;

CREATE OR REPLACE FUNCTION duly.word(asked jsonb, name text, words text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    given constant text := duly.field(asked, name, 'string');
BEGIN
    IF given <> ALL (words) THEN
        PERFORM duly.refuse('backoff.' || name, 'UNKNOWN_WORD',
                            'must be one of ' || array_to_string(words, ', '));
    END IF;
    RETURN given;
END
$$;

-- A back-off as tasks store it: the requested fields, in the words of the interface, and the others from
-- `otherwise`, which is such a text.
CREATE OR REPLACE FUNCTION duly.back_off(asked jsonb, otherwise jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    week   constant integer := 7 * 24 * 60 * 60;
    factor double precision;
    waits  bigint[];
    kept   text[];
BEGIN
    IF jsonb_typeof(asked) <> 'object' THEN
        PERFORM duly.refuse('backoff', 'WRONG_TYPE', 'must be an object');
    ELSIF asked - ARRAY['strategy', 'baseSeconds', 'factor', 'capSeconds', 'jitter'] <> '{}' THEN
        PERFORM duly.refuse('backoff', 'UNKNOWN_FIELD',
                            'has the fields strategy, baseSeconds, factor, capSeconds and jitter');
    END IF;
    IF duly.field(asked, 'factor', 'number')::numeric NOT BETWEEN 1 AND 100 THEN
        PERFORM duly.refuse('backoff.factor', 'OUT_OF_RANGE', 'must be a number from 1 to 100');
    END IF;
    factor := coalesce(asked ->> 'factor', otherwise ->> 'factor')::double precision;
    waits := ARRAY[
        duly.millis('backoff.baseSeconds', duly.field(asked, 'baseSeconds', 'number')::numeric, week),
        duly.millis('backoff.capSeconds', duly.field(asked, 'capSeconds', 'number')::numeric, week)];
    kept := ARRAY(
        SELECT format('{"secs":%s,"nanos":%s}',
                      coalesce(waits[w.n] / 1000, (otherwise -> w.name ->> 'secs')::bigint),
                      coalesce(waits[w.n] % 1000 * 1000000, (otherwise -> w.name ->> 'nanos')::bigint))
        FROM unnest(ARRAY['base', 'cap']) WITH ORDINALITY w(name, n) ORDER BY w.n);
    RETURN format(
        '{"strategy":"%s","base":%s,"factor":%s,"cap":%s,"jitter":"%s"}',
        coalesce(duly.word(asked, 'strategy', '{none,fixed,linear,exponential}'),
                 otherwise ->> 'strategy'),
        kept[1], CASE WHEN factor = floor(factor) THEN factor || '.0' ELSE factor::text END, kept[2],
        coalesce(duly.word(asked, 'jitter', '{none,equal,full}'), otherwise ->> 'jitter'));
END
$$;
