-- The SELECTs that define the rows of built-in fixtures, of all their tables.

CREATE FUNCTION bench_internal.builtin_queries()
    RETURNS TABLE (fixture text, place int, relation text, ids bigint, rows_query text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'builtin_queries_wrapper';
COMMENT ON FUNCTION bench_internal.builtin_queries IS 'Queries of the built-in fixtures, for bench.fixture_queries.';

CREATE VIEW bench.fixture_queries AS
SELECT fixture, place, relation, ids, rows_query FROM bench_internal.builtin_queries();
COMMENT ON VIEW bench.fixture_queries IS 'The SELECTs that define the rows of built-in fixtures, one row per SELECT; bench.load produces the same rows natively';
COMMENT ON COLUMN bench.fixture_queries.fixture IS 'Name of the fixture';
COMMENT ON COLUMN bench.fixture_queries.place IS 'Position in the order of loading, starting at 1';
COMMENT ON COLUMN bench.fixture_queries.relation IS 'Table that the rows go to';
COMMENT ON COLUMN bench.fixture_queries.ids IS 'Number of ids in the fixture''s default size; an id can stand for several rows';
COMMENT ON COLUMN bench.fixture_queries.rows_query IS 'SELECT that defines the rows with the ids $1 to $2';
GRANT SELECT ON bench.fixture_queries TO PUBLIC;
