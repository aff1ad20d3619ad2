\echo Use "ALTER EXTENSION pgbench_ext UPDATE TO '0.2.0'" to load this file. \quit

-- From 0.1.0 to 0.2.0. test/faults/upgrade.sh holds the outcome against a fresh installation.
-- Tables that pg_dump carries keep schema, kind and columns; what is added to them is nullable or has a default.

-- Puts `created` (its CREATE FUNCTION, COMMENT and REVOKE) in the place of a function whose arguments or result change,
-- and gives the roles that users had granted the old one the new one. Such grants are not the extension's own: pg_dump has
-- to see them as the users', so pg_init_privs keeps what it had without them.
CREATE FUNCTION bench.replace_function(replaced regprocedure, created text, signature text) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    granted record;
    grants text[] := '{}';
    initial aclitem[];
BEGIN
    FOR granted IN
        SELECT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(r.rolname) END AS role, a.is_grantable
        FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) AS a LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE p.oid = replaced AND a.grantee <> p.proowner
          AND NOT EXISTS (SELECT FROM pg_init_privs i CROSS JOIN LATERAL aclexplode(i.initprivs) AS b
                          WHERE i.objoid = p.oid AND i.classoid = 'pg_proc'::regclass AND b.grantee = a.grantee)
    LOOP
        grants := grants || (granted.role || CASE WHEN granted.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END);
    END LOOP;
    EXECUTE format('ALTER EXTENSION pgbench_ext DROP FUNCTION %s', replaced);
    EXECUTE format('DROP FUNCTION %s', replaced);
    EXECUTE created;
    initial := (SELECT i.initprivs FROM pg_init_privs i
                WHERE i.objoid = signature::regprocedure AND i.classoid = 'pg_proc'::regclass);
    FOR place IN 1 .. cardinality(grants) LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', signature::regprocedure, grants[place]);
    END LOOP;
    IF initial IS NULL THEN
        DELETE FROM pg_init_privs WHERE objoid = signature::regprocedure AND classoid = 'pg_proc'::regclass;
    ELSE
        UPDATE pg_init_privs SET initprivs = initial WHERE objoid = signature::regprocedure AND classoid = 'pg_proc'::regclass;
    END IF;
END $$;

-- (changes go here, in the order of src/schema)

-- audit: readings' times, overlaps in linear time, rows of statements, and what could not be judged
ALTER TABLE bench.run_log ADD COLUMN counted_from timestamptz;
-- When a run's work can have reached the server's counters, for bench.audits: from the first reading of them until its end.
-- A clock may be set back.
CREATE INDEX run_log_counted ON bench.run_log USING gist (
    tstzrange(least(counted_from, started_at), CASE WHEN finished_at IS NOT NULL THEN greatest(finished_at, least(counted_from, started_at)) END))
    WHERE started_at IS NOT NULL AND origin IS NULL;
ALTER TABLE bench.statement_log ADD COLUMN rows bigint, ADD COLUMN writes bigint, ADD COLUMN empty_writes bigint;
CREATE OR REPLACE VIEW bench.statements WITH (security_barrier) AS
SELECT s.run_id, s.node, s.script, s.command, s.line, s.statement, s.count, s.failed, s.retried, s.latency_avg_ms,
       s.latency_p95_ms, s.plan, s.generic_plans, s.custom_plans, s.plan_changes, s.workers_planned, s.workers_launched,
       s.rows, s.writes, s.empty_writes
FROM bench.statement_log s JOIN bench.run_log r USING (run_id)
WHERE bench.is_visible(r.role);
COMMENT ON COLUMN bench.statements.rows IS 'Rows returned, inserted, updated, deleted or merged, in all phases; NULL for meta commands and runs before 0.2.0';
COMMENT ON COLUMN bench.statements.writes IS 'Executions that were to insert, update, delete or merge rows, in all phases; NULL where there was none';
COMMENT ON COLUMN bench.statements.empty_writes IS 'Of these, executions that affected no row';
CREATE OR REPLACE VIEW bench.audits WITH (security_barrier) AS
SELECT a.run_id, a.node, a.counter, a.harness, a.server, a.harness - a.server AS difference,
       CASE WHEN a.judged AND (o.run_id IS NULL OR a.counter = 'samples') THEN a.harness = a.server END AS ok,
       CASE WHEN a.judged AND o.run_id IS NOT NULL AND a.counter <> 'samples'
            THEN format('run %s worked on the same fixture, or ran the same workload, at the same time', o.beside) ELSE a.reason END AS reason
FROM bench.audit_log a
JOIN bench.run_log r USING (run_id)
-- Runs that another was in the way of: each once, and found by the index run_log_counted.
LEFT JOIN (
    SELECT b.run_id, min(x.run_id) AS beside
    FROM bench.run_log b JOIN bench.run_log x ON
        -- of other servers' runs that was said when they were exported
        b.started_at IS NOT NULL AND b.origin IS NULL AND x.started_at IS NOT NULL AND x.origin IS NULL
        AND tstzrange(least(b.counted_from, b.started_at), CASE WHEN b.finished_at IS NOT NULL THEN greatest(b.finished_at, least(b.counted_from, b.started_at)) END)
         && tstzrange(least(x.counted_from, x.started_at), CASE WHEN x.finished_at IS NOT NULL THEN greatest(x.finished_at, least(x.counted_from, x.started_at)) END)
        AND x.run_id <> b.run_id
        -- a run on several nodes and its part on this one are one
        AND NOT (x.nodes <> 'local' AND b.nodes <> 'local' AND (b.part_of ->> 'run_id')::bigint IS NOT DISTINCT FROM x.run_id)
        AND NOT (x.nodes <> 'local' AND b.nodes <> 'local' AND (x.part_of ->> 'run_id')::bigint IS NOT DISTINCT FROM b.run_id)
        AND (string_to_array(x.fixture, ',') && string_to_array(b.fixture, ',')
             -- names of a mix, without their weights
             OR string_to_array(rtrim(regexp_replace(x.workload || ',', '\s*(@\s*\d+\s*)?,\s*', ',', 'g'), ','), ',')
                && string_to_array(rtrim(regexp_replace(b.workload || ',', '\s*(@\s*\d+\s*)?,\s*', ',', 'g'), ','), ','))
        -- The clients of one that crashed were at work until a while after its last sign of life.
        AND (x.finished_at IS NOT NULL OR bench.status_of(x.status, x.segment, x.run_id) <> 'crashed'
             OR least(b.counted_from, b.started_at) < (2 * x.sample_interval + 60) * interval '1 s'
                + greatest(x.started_at, (SELECT max(s.at) FROM bench.samples s WHERE s.run_id = x.run_id), (SELECT max(w.at) FROM bench.warmup_samples w WHERE w.run_id = x.run_id)))
    GROUP BY b.run_id
) o ON o.run_id = a.run_id
WHERE bench.is_visible(r.role);
CREATE OR REPLACE FUNCTION bench.audit_ok(run_id bigint, description text DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    status text := bench.status_to_assert(run_id);
    judged bigint;
    of_tables bigint;
    reasons text;
    wrong text;
BEGIN
    SELECT count(a.ok), count(a.ok) FILTER (WHERE a.counter IN ('n_tup_ins', 'n_tup_upd', 'n_tup_del', 'idx_scan')),
           string_agg(DISTINCT a.reason, '; ') FILTER (WHERE a.counter IN ('n_tup_ins', 'n_tup_upd', 'n_tup_del', 'idx_scan')),
           string_agg(format('%s: harness %s, server %s, difference %s', a.counter, a.harness, a.server, a.difference)
                      || coalesce(' (' || a.reason || ')', ''), E'\n' ORDER BY a.counter) FILTER (WHERE NOT a.ok)
    INTO judged, of_tables, reasons, wrong FROM bench.audit(run_id) a;
    wrong := nullif(concat_ws(E'\n',
        CASE WHEN status <> 'completed' THEN format('run %s is %s', run_id, status) END,
        CASE WHEN judged = 0 THEN format('run %s has no counters that could be held against the server''s', run_id) END,
        wrong), '');
    RETURN bench.tap(wrong IS NULL, coalesce(description, format('run %s: audit', run_id)),
                     coalesce(wrong, CASE WHEN of_tables = 0 THEN format('no counter of a table was judged: %s', reasons) END));
END $$;
COMMENT ON FUNCTION bench.audit_ok IS
'pgTAP assertion: the run has completed, and every counter that bench.audit judges is equal to the server''s. A run without any fails; one in which no counter of a table could be judged passes with a diagnostic that says why.';

DROP FUNCTION bench.replace_function;
