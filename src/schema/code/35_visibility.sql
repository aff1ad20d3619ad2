-- The tables of results that everybody may read show the rows of the runs that bench.runs shows. Those are gathered once a
-- query, not asked after for each row.

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY '{samples,warmup_samples,latencies,transactions,standbys}'::text[] LOOP
        EXECUTE format('ALTER TABLE bench.%I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY visible ON bench.%I FOR SELECT USING (run_id IN (SELECT r.run_id FROM bench.runs r))', name);
        EXECUTE format('COMMENT ON POLICY visible ON bench.%I IS %L', name, 'Shows the rows of runs that bench.runs shows');
    END LOOP;
END $$;
