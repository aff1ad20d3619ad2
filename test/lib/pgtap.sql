-- What pgTAP files have in common: \ir ../lib/pgtap.sql

-- Waits until a query says true; came is false when that did not happen within twenty seconds.
CREATE PROCEDURE pg_temp.until(query text, INOUT came boolean DEFAULT false) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. 1000 LOOP
        COMMIT;
        PERFORM pg_stat_clear_snapshot();
        EXECUTE query INTO came;
        EXIT WHEN came;
        PERFORM pg_sleep(0.02);
    END LOOP;
END $$;

-- bench.create_workload, without its result.
CREATE FUNCTION pg_temp.workload(name text, script text, fixture text DEFAULT NULL) RETURNS void LANGUAGE sql AS $$
    SELECT bench.create_workload($1, $2, $3)
$$;

-- Whether a statement is canceled.
CREATE FUNCTION pg_temp.canceled(statement text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    RETURN false;
EXCEPTION WHEN query_canceled THEN RETURN true;
END $$;

-- SQLSTATE of a statement's error, 'none' if it has none.
CREATE FUNCTION pg_temp.sqlstate_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    RETURN 'none';
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE;
END $$;

-- Where each relation of a schema is, and with which persistence and reloptions.
CREATE FUNCTION pg_temp.places(s text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(
        concat_ws(' ', relname, relpersistence::text, coalesce(spcname, 'default'), array_to_string(reloptions, ',')),
        '; ' ORDER BY relname)
    FROM pg_class c LEFT JOIN pg_tablespace t ON t.oid = reltablespace
    WHERE relnamespace = s::regnamespace AND relkind IN ('r', 'i')
$$;
