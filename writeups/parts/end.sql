-- What every write-up ends with: its tables go, its runs stay. Takes fixtures, an array of names.

\if :keep
    \echo 'The tables are kept in schema' :schema
\else
    SELECT count(bench.unload(name)) AS unloaded FROM bench.fixtures WHERE schema = :'schema' AND name = ANY (:'fixtures') \gset
    SELECT :'schema_is_new' AND NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = :'schema'::regnamespace) AS schema_can_go \gset
    \if :schema_can_go
        DROP SCHEMA :"schema";
    \endif
\endif
SELECT format('The runs are kept: SELECT * FROM bench.runs WHERE tags @> %L', :'tags') AS kept \gset
\echo :kept
