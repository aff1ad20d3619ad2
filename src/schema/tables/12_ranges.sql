-- The ranges of what the tables of results hold, as CHECK constraints named after their column. Imported documents and
-- other nodes' parts meet them as the recorder does: views that add up or divide what is within them cannot fail.

DO $$
DECLARE
    checks record;
BEGIN
    FOR checks IN
        WITH rules (relation, "column", condition) AS (VALUES
            ('run_log', 'clients', 'clients BETWEEN 1 AND 262143'), -- MAX_BACKENDS of postmaster/postmaster.h
            ('run_log', 'jobs', 'jobs BETWEEN 1 AND 262143'),
            ('run_log', 'secs', 'secs > 0 AND secs <= 31622400'), -- a year
            ('run_log', 'transactions', 'transactions > 0'),
            ('run_log', 'warmup', 'warmup BETWEEN 0 AND 31622400'),
            ('run_log', 'warmup_took', 'warmup_took BETWEEN 0 AND 31622400'),
            ('run_log', 'rate', 'rate BETWEEN 0.000001 AND 1000000'),
            ('run_log', 'latency_limit', 'latency_limit BETWEEN 0.000001 AND 31622400000'),
            ('run_log', 'log_rate', 'log_rate BETWEEN 0 AND 1'),
            ('run_log', 'sample_interval', 'sample_interval BETWEEN 0.1 AND 3600'),
            ('run_log', 'fixture_rows', '0 <= ALL (fixture_rows)'),
            ('run_log', 'part_of', $rule$part_of IS NULL OR coalesce(part_of ->> 'run_id' ~ '^[0-9]{1,18}$', false)$rule$),
            ('transactions', 'outcome', $rule$outcome IN ('processed', 'left open', 'failed', 'aborted', 'skipped', 'unknown')$rule$),
            ('node_log', 'status', $rule$status IN ('completed', 'incomplete', 'canceled', 'failed', 'crashed')$rule$),
            ('node_log', 'processors', 'processors BETWEEN 1 AND 65536'),
            -- Before the run's begin, or below zero.
            ('event_log', 'started', 'started BETWEEN -9007199254740991 AND 9007199254740991'),
            ('event_log', 'ended', 'ended BETWEEN -9007199254740991 AND 9007199254740991'),
            ('audit_log', 'server', 'server BETWEEN -9007199254740991 AND 9007199254740991'),
            ('node_log', 'start_offset_ms', 'start_offset_ms BETWEEN -9007199254740991 AND 9007199254740991'),
            ('node_log', 'clock_offset_ms', 'clock_offset_ms BETWEEN -9007199254740991 AND 9007199254740991'),
            ('*', 'run_id', NULL), ('*', 'sweep_id', NULL), ('*', 'seed', NULL), ('*', 'segment', NULL), ('*', 'coordinator_pid', NULL),
            ('*', 'clients', 'clients BETWEEN 0 AND 262143'),
            ('*', 'checkpoints', 'checkpoints BETWEEN 0 AND 1000000'), -- summed over nodes as int
            ('*', 'secs', 'secs BETWEEN 1e-9 AND 9007199254740991'),
            ('*', 'elapsed', 'elapsed BETWEEN 1e-9 AND 9007199254740991'),
            ('*', 'environment', $rule$jsonb_typeof(environment) = 'object'
                AND NOT jsonb_path_exists(environment, '$.processors ? (@ != null && (@.type() != "number" || @ < 1 || @ > 65536))')
                AND NOT jsonb_path_exists(environment, '$.driver_cpu_secs ? (@ != null && @.type() != "number")')
                AND NOT jsonb_path_exists(environment, '$.** ? (@.type() == "number" && (@ < -9007199254740991 || @ > 9007199254740991))')$rule$),
            ('*', 'waits', $rule$jsonb_typeof(waits) = 'object' AND NOT jsonb_path_exists(waits, '$.* ? (@.type() != "number" || @ < 0 || @ > 1)')$rule$),
            ('*', 'latency_histogram', $rule$CASE WHEN jsonb_typeof(latency_histogram) = 'object' THEN NOT jsonb_path_exists(latency_histogram,
                '$.keyvalue() ? (!(@.key like_regex "^[0-9]{1,2}$") || @.value.type() != "number" || @.value < 0 || @.value > 9007199254740991)')
                ELSE latency_histogram IS NULL END$rule$),
            ('*', 'latencies', $rule$jsonb_typeof(latencies) = 'array' AND NOT jsonb_path_exists(latencies,
                '$[*] ? (@.type() != "object" || exists(@.keyvalue() ? (!(@.key like_regex "^[0-9]{1,4}$") || @.value.type() != "number"
                    || @.value < 0 || @.value > 9007199254740991)))')$rule$)
        ),
        -- Integers up to 2^53 are exact in JSON whoever reads it (RFC 8259, section 6). Their sums stay within bigint in any run
        -- that is real, and products of figures within double precision.
        types (type, condition) AS (VALUES
            ('int4'::regtype, '%I >= 0'),
            ('int8', '%I BETWEEN 0 AND 9007199254740991'),
            ('int8[]', '0 <= ALL (%1$I) AND 9007199254740991 >= ALL (%1$I)'),
            ('float8[]', '0 <= ALL (%1$I) AND 9007199254740991 >= ALL (%1$I)'),
            ('float8', '%1$I = 0 OR %1$I BETWEEN 1e-75 AND 9007199254740991'),
            ('timestamptz', 'isfinite(%I)')
        )
        SELECT relation, string_agg(format('ADD CONSTRAINT %I CHECK (%s)', name, condition), ', ' ORDER BY number) AS constraints
        FROM (
            SELECT DISTINCT ON (c.oid, a.attnum) c.oid::regclass AS relation, a.attnum AS number, a.attname || '_range' AS name,
                CASE WHEN r.relation IS NOT NULL THEN r.condition
                     WHEN a.attname = 'share' OR starts_with(a.attname, 'cpu_') THEN format('%1$I = 0 OR %1$I BETWEEN 1e-75 AND 1', a.attname)
                     ELSE format(t.condition, a.attname) END AS condition
            FROM pg_class c
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            LEFT JOIN types t ON t.type = a.atttypid
            LEFT JOIN rules r ON r.relation IN (c.relname, '*') AND r."column" = a.attname
            WHERE c.relnamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace)
              AND c.relname IN ('run_log', 'samples', 'warmup_samples', 'latencies', 'standbys', 'transactions', 'error_log', 'script_log', 'statement_log',
                                'wait_log', 'event_log', 'relation_log', 'audit_log', 'node_log', 'call_log', 'duel_log', 'duel_statement_log',
                                'duel_wait_log')
            ORDER BY c.oid, a.attnum, r.relation = '*'
        ) AS columns
        WHERE condition IS NOT NULL AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = relation AND k.conname = name)
        GROUP BY relation
    LOOP
        EXECUTE format('ALTER TABLE %s %s', checks.relation, checks.constraints);
    END LOOP;
END $$;
