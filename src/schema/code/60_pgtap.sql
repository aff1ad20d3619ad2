-- Assertions for pgTAP, which is looked for when they are called. They read runs that have ended; those of duels make one.

CREATE FUNCTION bench_internal.check_extension(name text)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'check_extension_wrapper';
COMMENT ON FUNCTION bench_internal.check_extension IS
'Raises 42501 if a role could replace functions of an extension: it owns the extension, its schema or an object in that schema, or may create objects there. Superusers are trusted, and so is the calling role unless SET ROLE has changed it.';

CREATE FUNCTION bench_internal.tap(passed boolean, description text, remark text)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    home name := (SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pgtap');
    verdict text;
    remarks text;
BEGIN
    IF home IS NULL THEN
        RAISE object_not_in_prerequisite_state
            USING MESSAGE = 'extension "pgtap" is not installed', HINT = 'Run CREATE EXTENSION pgtap.';
    END IF;
    PERFORM bench_internal.check_extension('pgtap');
    -- pgTAP's functions call each other by their bare names, and keep their counts in temporary tables.
    PERFORM set_config('search_path', format('pg_catalog, %I, pg_temp', home), true);
    EXECUTE format('SELECT %I.ok($1, $2)', home) INTO verdict USING passed, description;
    EXECUTE format('SELECT %I.diag($1)', home) INTO remarks USING remark;
    RETURN concat_ws(E'\n', verdict, remarks);
END $$;
COMMENT ON FUNCTION bench_internal.tap IS
'Returns the TAP lines of pgTAP''s ok(), and of diag() for a remark, from the schema of extension pgtap; raises 42501 if a role that the caller cannot trust could have replaced them. For the assertions.';

CREATE FUNCTION bench_internal.status_to_assert(run_id bigint)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    status text;
BEGIN
    SELECT r.status INTO status FROM bench.runs r WHERE r.run_id = status_to_assert.run_id;
    IF NOT FOUND THEN
        -- It knows why, and says so.
        PERFORM FROM bench.findings(run_id);
    END IF;
    RETURN status;
END $$;
COMMENT ON FUNCTION bench_internal.status_to_assert IS
'Returns the status of a run; raises 22004 for NULL, 42704 if the run does not exist, 42501 if the caller may not see it. For the assertions.';

CREATE FUNCTION bench_internal.figure_ok(run_id bigint, figure text, have double precision, op text, want double precision, unit text, description text)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    status text := bench_internal.status_to_assert(run_id);
    run record;
    holds boolean;
    remark text;
BEGIN
    IF want = 'NaN' THEN
        RAISE invalid_parameter_value USING MESSAGE = 'value must be a number, not NaN';
    END IF;
    IF op IS NULL OR want IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = format('%s must not be null', CASE WHEN op IS NULL THEN 'op' ELSE 'value' END);
    END IF;
    CASE op
        WHEN '>' THEN holds := have > want;
        WHEN '>=' THEN holds := have >= want;
        WHEN '<' THEN holds := have < want;
        WHEN '<=' THEN holds := have <= want;
        WHEN '=' THEN holds := have = want;
        WHEN '<>' THEN holds := have <> want;
        ELSE
            RAISE invalid_parameter_value
                USING MESSAGE = format('unrecognized value for op: "%s"', op),
                      HINT = 'Available values: ''>'', ''>='', ''<'', ''<='', ''='', ''<>''.';
    END CASE;
    holds := status = 'completed' AND coalesce(holds, false);
    IF NOT holds THEN
        SELECT * INTO run FROM bench.summary s WHERE s.run_id = figure_ok.run_id;
        remark := concat_ws(E'\n',
            format('        have: %s', coalesce(have::text, 'nothing measured')),
            format('        want: %s %s', op, want),
            format('         run: %s, %s with %s clients, is %s', run_id, run.workload, run.clients, status),
            CASE WHEN run.secs > 0 THEN format('     samples: tps min %s, max %s over %s s', run.tps_min, run.tps_max, run.secs) END);
    END IF;
    RETURN bench_internal.tap(holds, coalesce(description, format('run %s: %s %s %s', run_id, figure, op, want) || unit), remark);
END $$;
COMMENT ON FUNCTION bench_internal.figure_ok IS 'Returns TAP for the comparison of a completed run''s figure with a value. For bench.tps_ok and bench.latency_ok.';

CREATE FUNCTION bench.tps_ok(run_id bigint, op text, value double precision, description text DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tps double precision := (SELECT s.tps FROM bench.summary s WHERE s.run_id = tps_ok.run_id);
BEGIN
    RETURN bench_internal.figure_ok(run_id, 'tps', tps, op, value, '', description);
END $$;
COMMENT ON FUNCTION bench.tps_ok IS
'pgTAP assertion: the run completed, and its tps is >, >=, <, <=, = or <> value, in transactions per second.';

CREATE FUNCTION bench.latency_ok(run_id bigint, percentile double precision, op text, value_ms double precision, description text DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    latency_ms double precision := bench.percentile(run_id, percentile);
BEGIN
    RETURN bench_internal.figure_ok(run_id, format('p%s latency', trim_scale(percentile::numeric * 100)), latency_ms, op, value_ms, ' ms', description);
END $$;
COMMENT ON FUNCTION bench.latency_ok IS
'pgTAP assertion: the run completed, and that percentile of its latencies is >, >=, <, <=, = or <> value_ms, in milliseconds. percentile is a fraction, as in bench.percentile.';

CREATE FUNCTION bench.audit_ok(run_id bigint, description text DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    status text := bench_internal.status_to_assert(run_id);
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
        CASE WHEN judged = 0 THEN format('run %s has no counters to compare with the server''s', run_id) END,
        wrong), '');
    RETURN bench_internal.tap(wrong IS NULL, coalesce(description, format('run %s: audit', run_id)),
                     coalesce(wrong, CASE WHEN of_tables = 0 THEN format('no counter of a table was judged: %s', reasons) END));
END $$;
COMMENT ON FUNCTION bench.audit_ok IS
'pgTAP assertion: the run completed, and every counter that bench.audit judges equals the server''s. Fails if no counter was judged. If no counter of a table was judged, it passes with a diagnostic that says why.';

CREATE FUNCTION bench.check_ok(fixture text, description text DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    judged bigint;
    wrong text;
    reasons text;
BEGIN
    SELECT count(c.ok), string_agg(c.condition || coalesce(': ' || c.detail, ''), E'\n') FILTER (WHERE NOT c.ok),
           string_agg(DISTINCT c.detail, '; ') FILTER (WHERE c.ok IS NULL)
    INTO judged, wrong, reasons FROM bench.check(fixture) AS c;
    RETURN bench_internal.tap(judged > 0 AND wrong IS NULL, coalesce(description, format('fixture %s: check', fixture)),
                              coalesce(wrong, CASE WHEN judged = 0 THEN concat_ws(': ', 'no condition was judged', reasons) END));
END $$;
COMMENT ON FUNCTION bench.check_ok IS
'pgTAP assertion: every condition that bench.check judges holds. Fails if none was judged.';

CREATE FUNCTION bench.no_regression_ok(baseline bigint[], candidate bigint[], margin double precision DEFAULT 0.05, description text DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tps record;
    remark text;
    passed boolean;
BEGIN
    IF margin IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'margin must not be null';
    ELSIF NOT (margin >= 0 AND margin < 1) THEN
        RAISE invalid_parameter_value
            USING MESSAGE = format('margin must be at least 0 and below 1, not %s', margin),
                  HINT = 'margin is a fraction: 0.05 allows 5 %.';
    END IF;
    description := coalesce(description, format('runs %s: no regression beyond %s %% from runs %s', array_to_string(candidate, ', ', 'null'),
                                                trim_scale(margin::numeric * 100), array_to_string(baseline, ', ', 'null')));
    SELECT string_agg(format('run %s is %s', r.run_id, r.status), E'\n' ORDER BY r.run_id) INTO remark
    FROM (SELECT u.run_id, bench_internal.status_to_assert(u.run_id) AS status FROM unnest(baseline || candidate) AS u (run_id)) AS r
    WHERE r.status <> 'completed';
    IF remark IS NOT NULL THEN
        RETURN bench_internal.tap(false, description, remark);
    END IF;
    SELECT c.* INTO STRICT tps FROM bench.compare(baseline, candidate, margin) AS c WHERE c.metric = 'tps';
    -- A side without transactions has no interval, and needs none.
    passed := coalesce(coalesce(tps.ratio_high, CASE WHEN tps.verdict = 'slower' THEN tps.ratio END) >= 1 - margin, true);
    IF NOT passed OR tps.verdict NOT IN ('same', 'faster') THEN
        remark := concat_ws(E'\n',
            format('     tps: %s, baseline %s', round(tps.candidate::numeric, 1), round(tps.baseline::numeric, 1)),
            format('   ratio: %s', round(tps.ratio::numeric, 4))
                || CASE WHEN num_nulls(tps.ratio_low, tps.ratio_high) = 0
                        THEN format(', 95 %% interval %s to %s', round(tps.ratio_low::numeric, 4), round(tps.ratio_high::numeric, 4))
                        ELSE ', no interval' END
                || format('; a regression is below %s', 1 - margin),
            format(' verdict: %s', tps.verdict),
            '  advice: ' || tps.advice,
            'differences: ' || tps.differences::text);
    END IF;
    RETURN bench_internal.tap(passed, description, remark);
END $$;
COMMENT ON FUNCTION bench.no_regression_ok IS
'pgTAP assertion: fails only if the candidate runs are slower than the baseline runs by more than margin (a fraction: 0.05 is 5 %) with confidence: the whole 95 % interval of the TPS ratio from bench.compare is below 1 - margin. If it passes without the runs being the same or faster, a diagnostic says so.';

CREATE FUNCTION bench_internal.duel_tap(workload text, a jsonb, b jsonb, margin double precision, clients int, secs double precision,
                                        has_to_be_shown boolean, description text)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    latency record;
    status text;
    passed boolean;
    remark text;
BEGIN
    IF margin IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'margin must not be null';
    END IF;
    SELECT d.* INTO STRICT latency FROM bench.duel(workload, a, b, margin, clients => clients, secs => secs) AS d
    WHERE d.metric = 'latency_avg_ms';
    SELECT d.status INTO STRICT status FROM bench.duels AS d ORDER BY d.run_id DESC LIMIT 1;
    passed := status = 'completed' AND CASE WHEN has_to_be_shown THEN coalesce(latency.ratio_high <= 1 + margin, false)
                                            ELSE coalesce(latency.ratio_low <= 1 + margin, false) END;
    IF NOT passed OR latency.verdict = 'inconclusive' THEN
        remark := concat_ws(E'\n',
            '     run: ' || nullif(status, 'completed'),
            format('    time: %s ms, arm a %s ms', round(latency.b::numeric, 4), round(latency.a::numeric, 4)),
            format('   ratio: %s, interval %s to %s; allowed is %s', round(latency.ratio::numeric, 4), round(latency.ratio_low::numeric, 4),
                   round(latency.ratio_high::numeric, 4), 1 + margin),
            ' verdict: ' || latency.verdict,
            '  advice: ' || latency.advice);
    END IF;
    RETURN bench_internal.tap(passed, coalesce(description, format('duel of %s: b is no slower than a by %s %%', coalesce(workload, 'scripts'),
                                                                   trim_scale(margin::numeric * 100))), remark);
END $$;
COMMENT ON FUNCTION bench_internal.duel_tap IS 'Makes a duel and returns TAP for its mean latency. For bench.duel_ok and bench.no_slower_ok.';

CREATE FUNCTION bench.verify_ok(workload text, a jsonb, b jsonb, margin double precision DEFAULT 0.05, clients int DEFAULT 1,
                                secs double precision DEFAULT 10, max_missing double precision DEFAULT 0.05,
                                description text DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    slower text;
    executed bigint;
    undecided bigint;
    missing double precision;
BEGIN
    IF max_missing IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'max_missing must not be null';
    END IF;
    SELECT count(*) FILTER (WHERE v.baseline_count > 0), count(*) FILTER (WHERE v.verdict = 'inconclusive'),
           string_agg(format('%s, command %s: %s ms instead of %s, ratio %s to %s, %s and %s errors%s', v.workload, v.command,
                             round(v.candidate_ms::numeric, 4), round(v.baseline_ms::numeric, 4), round(v.ratio_low::numeric, 3),
                             round(v.ratio_high::numeric, 3), v.baseline_failed, v.candidate_failed,
                             CASE WHEN v.plan_changed THEN ', another plan' END), E'\n' ORDER BY v.effect DESC)
               FILTER (WHERE v.verdict = 'fails' OR v.verdict = 'slower' AND v.ratio_low > 1 + margin)
    INTO executed, undecided, slower FROM bench.verify(workload, a, b, margin, clients => clients, secs => secs) AS v;
    SELECT coalesce(sum(s.share), 0) INTO missing FROM bench.capture_statements AS s WHERE s.capture = verify_ok.workload
        AND NOT (s.kept AND EXISTS (SELECT FROM bench.workloads AS w WHERE w.name = s.workload));
    RETURN bench_internal.tap(executed > 0 AND slower IS NULL AND missing <= max_missing,
                              coalesce(description, format('%s: no statement of b is slower', coalesce(workload, 'scripts'))),
                              nullif(concat_ws(E'\n', slower, CASE WHEN executed = 0 THEN 'a has executed no statement' END,
                                  CASE WHEN missing > 0 THEN format('not replayed: %s %% of the captured time; at most %s %% may be missing',
                                      round(missing::numeric * 100, 1), round(max_missing::numeric * 100, 1)) END,
                                  CASE WHEN undecided > 0 THEN format('not decided: %s', undecided) END), ''));
END $$;
COMMENT ON FUNCTION bench.verify_ok IS
'pgTAP assertion: makes a bench.verify; fails if a statement of b is slower than that of a by more than margin (a fraction: 0.05 is 5 %) with confidence, or if its transactions fail more often; or if statements of a capture with more than max_missing (a fraction) of the captured time are not replayed. The diagnostics name these statements, and count those that are not decided.';

CREATE FUNCTION bench.rehearse_ok(workload text, change jsonb, blocker text DEFAULT NULL, lock_timeout double precision DEFAULT NULL,
                                  tries int DEFAULT 1, wait_limit double precision DEFAULT 1, undo text DEFAULT 'revert',
                                  clients int DEFAULT NULL, rate double precision DEFAULT NULL, description text DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    rehearsed record;
BEGIN
    SELECT r.* INTO STRICT rehearsed
    FROM bench.rehearse(workload, change, blocker => blocker, lock_timeout => lock_timeout, tries => tries, wait_limit => wait_limit,
                        undo => undo, clients => clients, rate => rate) AS r
    WHERE r.variant = 'change';
    RETURN bench_internal.tap(coalesce(rehearsed.verdict = 'safe', false),
                              coalesce(description, format('%s: the change is safe under load', coalesce(workload, 'scripts'))),
                              CASE WHEN rehearsed.verdict IS DISTINCT FROM 'safe' THEN rehearsed.answer END);
END $$;
COMMENT ON FUNCTION bench.rehearse_ok IS
'pgTAP assertion: rehearses a change with bench.rehearse; fails unless its verdict is safe. The diagnostic is the answer.';

CREATE FUNCTION bench.duel_ok(workload text, a jsonb, b jsonb, margin double precision DEFAULT 0.02, clients int DEFAULT 1,
                              secs double precision DEFAULT 10, description text DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE sql SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT bench_internal.duel_tap(workload, a, b, margin, clients, secs, true, description);
END;
COMMENT ON FUNCTION bench.duel_ok IS
'pgTAP assertion: makes a duel, which shows with confidence that b takes at most margin (a fraction: 0.02 is 2 %) more time per transaction than a. Fails if that is not shown within secs. The run ends as soon as the verdict is certain.';

CREATE FUNCTION bench.no_slower_ok(workload text, a jsonb, b jsonb, margin double precision DEFAULT 0.02, clients int DEFAULT 1,
                                   secs double precision DEFAULT 10, description text DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE sql SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT bench_internal.duel_tap(workload, a, b, margin, clients, secs, false, description);
END;
COMMENT ON FUNCTION bench.no_slower_ok IS
'pgTAP assertion: makes a duel; fails only if it shows with confidence that b takes more time per transaction than a by more than margin (a fraction: 0.02 is 2 %). If the verdict is inconclusive, it passes with a diagnostic.';
