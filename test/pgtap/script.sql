-- What is measured of scripts and of their commands: branches, retries, mixes, rates, latency limits.
\pset fieldsep '\n'
SET client_min_messages = error;
\ir ../lib/pgtap.sql
SELECT no_plan();

\o /dev/null
SELECT bench.load('pk', 1000), bench.load('log');
CREATE TABLE public.scr (id int PRIMARY KEY, n bigint NOT NULL);
INSERT INTO public.scr SELECT g, 0 FROM generate_series(1, 20) g;
CREATE TABLE public.scr_seen (client int, what text, value bigint);
-- How often each command was executed, in the order of the script.
CREATE FUNCTION pg_temp.counts(run bigint, of_script int DEFAULT 0) RETURNS bigint[] LANGUAGE sql AS
    'SELECT array_agg(count ORDER BY command) FROM bench.statements WHERE run_id = run AND script = of_script';
CREATE FUNCTION pg_temp.failed(run bigint, of_script int DEFAULT 0) RETURNS bigint[] LANGUAGE sql AS
    'SELECT array_agg(failed ORDER BY command) FROM bench.statements WHERE run_id = run AND script = of_script';
CREATE FUNCTION pg_temp.retried(run bigint, of_script int DEFAULT 0) RETURNS bigint[] LANGUAGE sql AS
    'SELECT array_agg(retried ORDER BY command) FROM bench.statements WHERE run_id = run AND script = of_script';
CREATE FUNCTION pg_temp.errors(run bigint) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(format('%s: %s = %s retried + %s failed', sqlstate, count, retried, failed),
        ', ' ORDER BY sqlstate)
    FROM bench.errors
    WHERE run_id = run
$$;
-- Whether the views on a run agree with each other.
CREATE FUNCTION pg_temp.disagreements(run bigint) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT v.what || ': ' || v.one || ' and ' || v.other
    FROM bench.summary s,
        LATERAL (VALUES
            ('transactions of scripts and summary', (SELECT sum(transactions) FROM bench.scripts WHERE run_id = run),
                s.transactions::numeric),
            ('the histogram', (SELECT sum(count) FROM bench.latencies WHERE run_id = run),
                nullif(s.transactions + (SELECT harness FROM bench.audits WHERE run_id = run
                    AND counter = 'committed: drain'), 0)::numeric),
            ('failed', (SELECT sum(failed) FROM bench.scripts WHERE run_id = run), s.failed::numeric),
            ('aborted', (SELECT sum(aborted) FROM bench.scripts WHERE run_id = run), s.aborted::numeric),
            ('retried', (SELECT sum(retried) FROM bench.scripts WHERE run_id = run), s.retried::numeric),
            ('skipped', (SELECT sum(skipped) FROM bench.scripts WHERE run_id = run), s.skipped::numeric),
            ('late', (SELECT sum(late) FROM bench.scripts WHERE run_id = run), s.late::numeric),
            ('samples', (SELECT sum(transactions) FROM bench.samples WHERE run_id = run), s.transactions::numeric),
            ('skipped of samples', (SELECT sum(skipped) FROM bench.samples WHERE run_id = run), s.skipped::numeric),
            ('late of samples', (SELECT sum(late) FROM bench.samples WHERE run_id = run), s.late::numeric),
            ('aborted of samples', (SELECT sum(x.aborted) FROM (SELECT aborted FROM bench.samples WHERE run_id = run
                UNION ALL SELECT aborted FROM bench.warmup_samples WHERE run_id = run) AS x), s.aborted::numeric),
            ('failed of samples', (SELECT sum(failed) FROM bench.samples WHERE run_id = run), s.failed::numeric)
        ) AS v (what, one, other)
    WHERE s.run_id = run AND v.one IS DISTINCT FROM v.other
    UNION ALL
    SELECT format('script %s has %s transactions and %s in the histogram', c.script, c.transactions,
        coalesce(l.count, 0))
    FROM bench.scripts c
    LEFT JOIN (
        SELECT script, sum(count) AS count FROM bench.latencies WHERE run_id = run GROUP BY script
    ) l USING (script)
    WHERE c.run_id = run AND c.transactions > coalesce(l.count, 0)
    UNION ALL
    SELECT format('%s: %s errors, %s retried and %s failed', sqlstate, count, retried, failed)
    FROM bench.errors
    WHERE run_id = run AND count <> retried + failed
$$;
\o

--
-- A script's commands, meta commands too
--
SELECT pg_temp.workload('scr_branches', $$\set i :client_id + 1
\if :i = 1
SELECT 'first';
\elif :i = 2

  SELECT
    'second';
\set j 2
\else
SELECT 'other' AS "Other" \gset
\if false
SELECT 0;
\endif
\endif
\sleep 1 us
;
/* a comment */
SELECT 1 AS a \aset p_
$$) \g /dev/null
SELECT bench.run('scr_branches', 4, transactions => 5) AS run_id \gset
SELECT results_eq(
    format('SELECT command, line, statement, count FROM bench.statements WHERE run_id = %s ORDER BY command', :run_id),
    $$
        VALUES
            (1, 1, '\set i :client_id + 1', 20::bigint),
            (2, 2, '\if :i = 1', 20),
            (3, 3, 'SELECT ''first'';', 5),
            (4, 4, '\elif :i = 2', 20),
            (5, 6, E'SELECT\n    ''second'';', 5),
            (6, 8, '\set j 2', 5),
            (7, 9, '\else', 15),
            (8, 10, 'SELECT ''other'' AS "Other"', 10),
            (9, 11, '\if false', 10),
            (10, 12, 'SELECT 0;', 0),
            (11, 13, '\endif', 10),
            (12, 14, '\endif', 20),
            (13, 15, '\sleep 1 us', 20),
            (14, 16, ';', 20),
            (15, 17, E'/* a comment */\nSELECT 1 AS a', 20)
    $$, 'each command is counted as often as its branch was taken');
SELECT
    is(sum(failed + retried), 0::numeric, 'none has failed'),
    ok(bool_and((latency_avg_ms IS NULL) = (count = 0) AND (latency_p95_ms IS NULL) = (count = 0)),
        'those that ran have latencies'),
    ok(bool_and(coalesce(latency_avg_ms >= 0 AND latency_p95_ms >= 0, true)), 'which are not negative'),
    is(array_agg(DISTINCT script), '{0}', 'all are of script 0'),
    is(array_agg(DISTINCT node), '{0}', 'on node 0')
FROM bench.statements
WHERE run_id = :run_id;
SELECT is_empty(format('SELECT pg_temp.disagreements(%s)', :run_id), 'the views agree');
-- in each mode the same
SELECT
    bench.run('scr_branches', 4, transactions => 5, query_mode => 'simple') AS simple,
    bench.run('scr_branches', 4, transactions => 5, query_mode => 'extended') AS extended \gset
SELECT
    is(pg_temp.counts(:simple), pg_temp.counts(:run_id), 'in simple mode'),
    is(pg_temp.counts(:extended), pg_temp.counts(:run_id), 'in extended mode');
SELECT is(array_agg(query_mode ORDER BY run_id), '{prepared,simple,extended}'::text[],
    'bench.runs says which mode it was')
FROM bench.runs
WHERE run_id >= :run_id;
-- the sum of the commands' times is the time of the transactions, for nothing is in between
SELECT pg_temp.workload('scr_times', E'\\set x 1\nSELECT pg_sleep(0.02);\nSELECT :x;\n\\sleep 10 ms') \g /dev/null
SELECT bench.run('scr_times', 2, transactions => 10) AS run_id \gset
SELECT ok(abs(c.total / t.total - 1) < 0.1,
    format('the times of the commands (%s ms) add up to that of the transactions (%s ms)', c.total, t.total))
FROM (SELECT sum(latency_avg_ms * count) AS total FROM bench.statements WHERE run_id = :run_id) c,
    (SELECT latency_avg_ms * transactions AS total FROM bench.summary WHERE run_id = :run_id) t;
SELECT ok(latency_avg_ms >= 20 AND latency_p95_ms >= 19.6, 'a pg_sleep takes its time')
FROM bench.statements
WHERE run_id = :run_id AND command = 2;
SELECT ok(latency_avg_ms >= 10 AND latency_p95_ms >= 9.8, 'a \sleep, too')
FROM bench.statements
WHERE run_id = :run_id AND command = 4;
-- what is not measured is not counted
SELECT bench.run('scr_times', secs => 0.3, warmup => 0.2, sample_interval => 0.1) AS run_id \gset
SELECT ok(count BETWEEN 0 AND 300 / 30 + 2, 'commands of the warm-up are not counted')
FROM bench.statements
WHERE run_id = :run_id AND command = 4;
SELECT is_empty(format('SELECT pg_temp.disagreements(%s)', :run_id), 'the views agree');

--
-- Failures, and where they are
--
SELECT pg_temp.workload('scr_fails', $$BEGIN;
\set x 1
UPDATE public.scr SET n = n + :x WHERE id = 1;

  SELECT
  1 / (:client_id::int - :client_id::int);
END;$$) \g /dev/null
SELECT bench.run('scr_fails', 3, transactions => 5) AS run_id \gset
SELECT
    is(pg_temp.counts(:run_id), '{3,3,3,0,0}', 'commands before the failure are counted, it is not'),
    is(pg_temp.failed(:run_id), '{0,0,0,3,0}', 'each transaction is given up at the command that failed'),
    is(pg_temp.retried(:run_id), '{0,0,0,0,0}', 'and not retried'),
    is(pg_temp.errors(:run_id), '22012: 3 = 0 retried + 3 failed', 'bench.errors has them as failed'),
    is_empty(format('SELECT pg_temp.disagreements(%s)', :run_id), 'the views agree');
SELECT
    is(detail, E'script "scr_fails", line 5:\nSELECT', 'the detail names script and line'),
    is(message, 'division by zero', 'the message is the server''s')
FROM bench.errors
WHERE run_id = :run_id;
SELECT is(context, NULL, 'of a plain statement there is no context') FROM bench.errors WHERE run_id = :run_id;
CREATE FUNCTION public.scr_raises() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    RAISE 'on purpose';
END $$;
SELECT pg_temp.workload('scr_raises', 'SELECT public.scr_raises();') \g /dev/null
SELECT bench.run('scr_raises', transactions => 1) AS run_id \gset
SELECT
    is(message, 'on purpose', 'an error of a function'),
    alike(context, 'PL/pgSQL function %scr_raises() line 3 at RAISE', 'has its context')
FROM bench.errors
WHERE run_id = :run_id;
DROP FUNCTION public.scr_raises();
-- in a meta command, in a \gset, at the end
SELECT pg_temp.workload('scr_meta', E'SELECT 1;\n\\if :client_id >= 0\n\\set x 1 / 0\n\\endif') \g /dev/null
SELECT bench.run('scr_meta', 2, transactions => 5) AS run_id \gset
SELECT
    is(pg_temp.counts(:run_id), '{2,2,0,0}', 'a meta command that fails: what is before it'),
    is(pg_temp.failed(:run_id), '{0,0,2,0}', 'is given up there');
SELECT alike(detail, 'script "scr_meta", line 3:%\\set x 1 / 0', 'and has a place')
FROM bench.errors
WHERE run_id = :run_id;
SELECT pg_temp.workload('scr_gset', $$SELECT 1;
SELECT generate_series(1, 2) AS x \gset
SELECT :x::int;$$) \g /dev/null
SELECT bench.run('scr_gset', 2, transactions => 5) AS run_id \gset
SELECT
    is(pg_temp.counts(:run_id), '{2,0,0}', 'a \gset of two rows: its statement is not counted'),
    is(pg_temp.failed(:run_id), '{0,2,0}', 'and is where it is given up');
SELECT alike(detail, 'script "scr_gset", line 2:%', 'which the detail says') FROM bench.errors WHERE run_id = :run_id;
SELECT pg_temp.workload('scr_open', E'SELECT 1;\n\nBEGIN;') \g /dev/null
SELECT bench.run('scr_open', transactions => 5) AS run_id \gset
SELECT is(pg_temp.failed(:run_id), '{0,1}', 'a block left open is given up at the last command');
SELECT alike(detail, 'script "scr_open"%', 'and has a place') FROM bench.errors WHERE run_id = :run_id;
SELECT
    is(transactions, 1::bigint, 'its transaction is counted, as in pgbench'),
    is(failed, 0::bigint, 'none has failed'),
    is(aborted, 1::bigint, 'and the client has ended'),
    is_empty(format('SELECT pg_temp.disagreements(%s)', :run_id), 'the views agree')
FROM bench.summary
WHERE run_id = :run_id;
-- the script of a mix
SELECT bench.run('scr_branches,scr_meta@1000', 1, transactions => 50) AS run_id \gset
SELECT alike(detail, 'script "scr_meta", line 3:%', 'in a mix the detail says which script')
FROM bench.errors
WHERE run_id = :run_id;
SELECT is(aborted, CASE workload WHEN 'scr_meta' THEN 1 ELSE 0 END::bigint,
    format('and bench.scripts, too: %s', workload))
FROM bench.scripts
WHERE run_id = :run_id
ORDER BY script;

--
-- Retries: four clients that want the same row
--
SELECT pg_temp.workload('scr_serial', $$\set r random(1, 1000000)
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT n FROM public.scr WHERE id = 1;
SELECT pg_sleep(0.001);
UPDATE public.scr SET n = n + 1 WHERE id = 1;
END;$$) \g /dev/null
UPDATE public.scr SET n = 0;
SELECT bench.run('scr_serial', 4, transactions => 25, max_tries => 3) AS run_id \gset
SELECT
    s.transactions AS done,
    s.failed AS given_up,
    s.retried AS retried,
    e.count AS errors,
    e.retried AS errors_retried,
    e.failed AS errors_failed
FROM bench.summary s JOIN bench.errors e USING (run_id)
WHERE run_id = :run_id \gset
SELECT
    is(:done + :given_up, 100, 'each transaction is done or given up'),
    is(:errors_failed, :given_up, 'each that is given up has one failed error'),
    is(:errors, :errors_retried + :errors_failed, 'each error is retried or failed'),
    cmp_ok(:errors_retried, '>=', 2 * :given_up + (:retried - :given_up),
        'each retried one had one retried error at least'),
    cmp_ok(:errors_retried, '>', 0, 'there are some'),
    is((SELECT n FROM public.scr WHERE id = 1), :done::bigint, 'the data say what is done'),
    is((SELECT array_agg(sqlstate) FROM bench.errors WHERE run_id = :run_id), '{40001}',
        'nothing but serialization failures'),
    is_empty(format('SELECT pg_temp.disagreements(%s)', :run_id), 'the views agree');
SELECT
    is(pg_temp.failed(:run_id), ARRAY[0, 0, 0, 0, :given_up, 0]::bigint[], 'they are given up at the UPDATE'),
    is(pg_temp.retried(:run_id), ARRAY[0, 0, 0, 0, :errors_retried, 0]::bigint[], 'and retried from there'),
    is(pg_temp.counts(:run_id),
        ARRAY[100 + :errors_retried, 100 + :errors_retried, 100 + :errors_retried, 100 + :errors_retried, :done,
            :done]::bigint[],
        'executions are those of all tries');
SELECT alike(detail, 'script "scr_serial", line 5:%', 'the detail names the UPDATE')
FROM bench.errors
WHERE run_id = :run_id;
-- without retries
SELECT bench.run('scr_serial', 4, transactions => 25) AS run_id \gset
SELECT
    is(s.transactions + s.failed, 100::bigint, 'max_tries 1: done or given up'),
    is(s.retried, 0::bigint, 'none is retried'),
    is(e.retried, 0::bigint, 'no error is retried'),
    is(e.failed, s.failed, 'each is a transaction given up'),
    is(pg_temp.retried(:run_id), '{0,0,0,0,0,0}', 'at no command')
FROM bench.summary s JOIN bench.errors e USING (run_id)
WHERE run_id = :run_id;

-- Deadlocks: two rows in either order
SELECT pg_temp.workload('scr_deadlock', $$\set a random(1, 2)
BEGIN;
UPDATE public.scr SET n = n + 1 WHERE id = :a;
SELECT pg_sleep(0.001);
UPDATE public.scr SET n = n + 1 WHERE id = 3 - :a;
END;$$) \g /dev/null
UPDATE public.scr SET n = 0;
SELECT bench.run('scr_deadlock', 4, transactions => 20, max_tries => 1000,
    settings => '{"deadlock_timeout": "5ms"}') AS run_id \gset
SELECT
    is(s.transactions, 80::bigint, 'deadlocks: all are done in the end'),
    is(s.failed, 0::bigint, 'none is given up'),
    cmp_ok(s.retried, '>', 0::bigint, 'some are retried'),
    cmp_ok(e.retried, '>=', s.retried, 'each after an error'),
    is(e.failed, 0::bigint, 'no error is final'),
    is(e.sqlstate, '40P01', 'each is a deadlock'),
    is((pg_temp.retried(:run_id))[3] + (pg_temp.retried(:run_id))[5], e.retried, 'they come at the UPDATEs')
FROM bench.summary s JOIN bench.errors e USING (run_id)
WHERE run_id = :run_id;
SELECT is(array_agg(n ORDER BY id), '{80,80}', 'the data add up') FROM public.scr WHERE id <= 2;

-- Another try draws the same random numbers, and finds the variables as the last one left them
CREATE SEQUENCE public.scr_tries;
SELECT pg_temp.workload('scr_again', $$SELECT nextval('public.scr_tries') AS try \gset
\set r random(1, 1000000000)
\set n case when :try % 3 = 1 then 1 else :n + 1 end
SELECT scr_fails_twice(:try::bigint, :r::bigint, :n::bigint);
\set after random(1, 1000000000)
INSERT INTO public.scr_seen VALUES (:client_id, 'after', :after);$$) \g /dev/null
-- fails in two of three tries; what it has seen outlives them as a notice would, in sequences
CREATE SEQUENCE public.scr_first; CREATE SEQUENCE public.scr_second; CREATE SEQUENCE public.scr_n;
CREATE FUNCTION public.scr_fails_twice(try bigint, r bigint, n bigint) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    PERFORM CASE try % 3 WHEN 1 THEN setval('public.scr_first', r) WHEN 2 THEN setval('public.scr_second', r) END;
    IF try % 3 <> 0 THEN
        RAISE serialization_failure;
    END IF;
    INSERT INTO public.scr_seen SELECT 0, 'first', s.last_value FROM public.scr_first s;
    INSERT INTO public.scr_seen SELECT 0, 'second', s.last_value FROM public.scr_second s;
    INSERT INTO public.scr_seen VALUES (0, 'third', r), (0, 'n', n);
    RETURN 1;
END $$;
SELECT bench.run('scr_again', transactions => 20, max_tries => 3, seed => 42, variables => '{"n": 0}') AS run_id \gset
SELECT
    is(transactions, 20::bigint, 'each transaction is done at its third try'),
    is(retried, 20::bigint, 'all of them were retried')
FROM bench.summary
WHERE run_id = :run_id;
SELECT
    is(pg_temp.errors(:run_id), '40001: 40 = 40 retried + 0 failed', 'by two errors each'),
    is(pg_temp.retried(:run_id), '{0,0,0,40,0,0}', 'at the same command');
SELECT
    is(array_agg(value) FILTER (WHERE what = 'second'), array_agg(value) FILTER (WHERE what = 'first'),
        'the second try draws what the first has drawn'),
    is(array_agg(value) FILTER (WHERE what = 'third'), array_agg(value) FILTER (WHERE what = 'first'),
        'the third, too'),
    is(array_agg(DISTINCT value) FILTER (WHERE what = 'n'), '{3}', 'variables are not reset between tries'),
    is(count(DISTINCT value) FILTER (WHERE what = 'first'), 20::bigint, 'transactions differ')
FROM public.scr_seen;
-- so they are those of a run without failures
SELECT results_eq($$SELECT value FROM public.scr_seen WHERE what IN ('first', 'after') ORDER BY value$$,
    $$
        SELECT split_part(output, ' ', 2)::bigint
        FROM bench.preview(
            E'\\set r random(1, 1000000000)\nSELECT :r ;\n\\set after random(1, 1000000000)\nSELECT :after ;',
            20, 0, 42)
        ORDER BY 1
    $$, 'and of a run without failures');

--
-- Mixes
--
SELECT
    pg_temp.workload('scr_a', E'\\set id random(1, :rows)\nSELECT info FROM pk WHERE id = :id;', 'pk'),
    pg_temp.workload('scr_b', 'SELECT 1;'),
    pg_temp.workload('scr_c', E'SELECT 2;\nSELECT 3;') \g /dev/null
SELECT bench.run('scr_a@6, scr_b@3,scr_c,scr_b@0', 4, transactions => 1500, seed => 1) AS run_id \gset
SELECT
    is(array_agg(workload ORDER BY script), '{scr_a,scr_b,scr_c,scr_b}'::text[],
        'a mix has its scripts in their order'),
    is(array_agg(weight ORDER BY script), '{6,3,1,0}', 'with their weights'),
    is(array_agg(fixture ORDER BY script), '{pk,NULL,NULL,NULL}'::text[], 'and their fixtures'),
    is(sum(transactions), 6000::numeric, 'the counts add up to the whole')
FROM bench.scripts
WHERE run_id = :run_id;
-- six standard deviations of a binomial distribution, so that a seed that is changed will do as well
SELECT ok(abs(transactions - 6000 * weight / 10.0) <= 6 * sqrt(6000 * (weight / 10.0) * (1 - weight / 10.0)),
    format('script %s comes %s times out of 6000, weight %s of 10', script, transactions, weight))
FROM bench.scripts
WHERE run_id = :run_id
ORDER BY script;
SELECT is(transactions, 0::bigint, 'weight 0 never runs') FROM bench.scripts WHERE run_id = :run_id AND script = 3;
SELECT is(array_agg(t.count ORDER BY t.script, t.command), array_agg(s.transactions ORDER BY t.script, t.command),
    'each command is executed as often as its script')
FROM bench.statements t JOIN bench.scripts s USING (run_id, script)
WHERE run_id = :run_id;
SELECT is_empty(format('SELECT pg_temp.disagreements(%s)', :run_id), 'the views agree');
SELECT
    ok(bool_and((latency_avg_ms IS NULL) = (transactions = 0) AND (latency_max_ms IS NULL) = (transactions = 0)),
        'scripts that ran have latencies'),
    ok(bool_and(coalesce(latency_p50_ms <= latency_p95_ms
        AND latency_p95_ms <= latency_p99_ms
        AND latency_p99_ms <= latency_max_ms * 1.02,
        true)),
        'in their order'),
    ok(bool_and(abs(tps - transactions / (SELECT sum(secs) FROM bench.samples WHERE run_id = :run_id)) < 0.001),
        'tps are transactions by the run''s time')
FROM bench.scripts
WHERE run_id = :run_id;
-- the same seed chooses the same scripts, another one others
SELECT
    bench.run('scr_a@6, scr_b@3,scr_c,scr_b@0', 4, transactions => 1500, seed => 1) AS again,
    bench.run('scr_a@6, scr_b@3,scr_c,scr_b@0', 4, transactions => 1500, seed => 2) AS other \gset
SELECT results_eq(format('SELECT script, transactions FROM bench.scripts WHERE run_id = %s ORDER BY 1', :again),
    format('SELECT script, transactions FROM bench.scripts WHERE run_id = %s ORDER BY 1', :run_id),
    'the same seed chooses the same scripts');
SELECT results_ne(format('SELECT script, transactions FROM bench.scripts WHERE run_id = %s ORDER BY 1', :other),
    format('SELECT script, transactions FROM bench.scripts WHERE run_id = %s ORDER BY 1', :run_id),
    'another seed others');

-- rows and scale are those of each script's own fixture
TRUNCATE public.scr_seen;
SELECT
    pg_temp.workload('scr_pk', $$
        INSERT INTO public.scr_seen VALUES (:client_id, 'pk', :rows), (:client_id, 'pk scale', :scale);
    $$, 'pk'),
    pg_temp.workload('scr_log', $$
        INSERT INTO public.scr_seen VALUES (:client_id, 'log', :rows), (:client_id, 'log scale', :scale);
    $$, 'log'),
    pg_temp.workload('scr_none', $$
        INSERT INTO public.scr_seen VALUES (:client_id, 'none', 0), (:client_id, 'none scale', :scale);
    $$),
    bench.load('log', 123) \g /dev/null
SELECT bench.run('scr_pk,scr_log,scr_none', 3, transactions => 60) AS run_id \gset
SELECT results_eq('SELECT DISTINCT what, value FROM public.scr_seen ORDER BY 1',
    $$VALUES ('log', 123::bigint), ('log scale', 1), ('none', 0), ('none scale', 1), ('pk', 1000), ('pk scale', 1)$$,
    'rows and scale are those of each script''s own fixture');
SELECT is(fixture, 'pk,log', 'bench.runs has both fixtures') FROM bench.runs WHERE run_id = :run_id;
-- unless they are given
TRUNCATE public.scr_seen;
SELECT bench.run('scr_pk,scr_log', 3, transactions => 30, variables => '{"rows": 7, "scale": 8}') AS run_id \gset
SELECT results_eq('SELECT DISTINCT what, value FROM public.scr_seen ORDER BY 1',
    $$VALUES ('log', 7::bigint), ('log scale', 8), ('pk', 7), ('pk scale', 8)$$, 'unless they are given');
-- a variable that one script sets is there for the others, and stays with its client
TRUNCATE public.scr_seen;
SELECT
    pg_temp.workload('scr_sets', E'\\set shared :client_id * 100 + 1'),
    pg_temp.workload('scr_reads', 'INSERT INTO public.scr_seen VALUES (:client_id, ''shared'', :shared);') \g /dev/null
SELECT bench.run('scr_sets,scr_reads', 3, transactions => 60) AS run_id \gset
SELECT is(count(*) FILTER (WHERE value IS NOT NULL AND value <> client * 100 + 1), 0::bigint,
    'a variable of one script is there for the others, and its client''s own')
FROM public.scr_seen;

--
-- Rates and latency limits
--
-- Far below what is possible
SELECT bench.run('scr_b', 2, secs => 2, rate => 50, sample_interval => 0.5, seed => 3) AS run_id \gset
-- six standard deviations of a Poisson distribution; a machine that stands still may leave a few behind
SELECT
    ok(s.transactions + s.backlog BETWEEN 100 - 60 AND 100 + 60,
        format('about as many as are due: %s', s.transactions)),
    cmp_ok(s.backlog, '<=', 50::bigint, 'hardly a backlog'),
    is(s.skipped, 0::bigint, 'none is skipped'),
    is(s.late, 0::bigint, 'none is late, without a limit'),
    ok(s.lag_avg_ms >= 0 AND s.lag_max_ms >= s.lag_avg_ms, 'with a lag'),
    ok(s.lag_avg_ms <= s.latency_avg_ms, 'which is part of the latency')
FROM bench.summary s
WHERE run_id = :run_id;
SELECT ok(bool_and((lag_avg_ms IS NULL) = (transactions = 0)), 'each sample has its lag')
FROM bench.samples
WHERE run_id = :run_id;
SELECT is_empty(format('SELECT pg_temp.disagreements(%s)', :run_id), 'the views agree');
-- Far above: 2 clients that can do 50 a second each, of 2000
SELECT pg_temp.workload('scr_slow', 'SELECT pg_sleep(0.02);') \g /dev/null
SELECT bench.run('scr_slow', 2, secs => 2, rate => 2000, sample_interval => 0.5, seed => 3) AS run_id \gset
SELECT
    cmp_ok(s.transactions, '<=', 200::bigint, 'no more than can be done'),
    cmp_ok(s.transactions, '>', 0::bigint, 'but some'),
    ok(s.transactions + s.backlog BETWEEN 4000 - 400 AND 4000 + 400,
        format('the rest of what is due is the backlog: %s', s.backlog)),
    is(s.skipped, 0::bigint, 'without a limit none is skipped'),
    cmp_ok(s.lag_max_ms, '>', 500::double precision, 'the lag has grown'),
    ok(s.latency_avg_ms >= s.lag_avg_ms + 19.9, 'latency counts from when it was due')
FROM bench.summary s
WHERE run_id = :run_id;
SELECT ok(bool_and(grows), 'the lag grows from sample to sample')
FROM (
    SELECT lag_avg_ms > lag(lag_avg_ms) OVER (ORDER BY elapsed) IS NOT FALSE AS grows
    FROM bench.samples
    WHERE run_id = :run_id AND transactions > 0
) g;
SELECT is_empty(format('SELECT pg_temp.disagreements(%s)', :run_id), 'the views agree');
-- With a limit those that cannot make it are skipped, so nothing is put off for long
SELECT bench.run('scr_slow', 2, secs => 2, rate => 2000, latency_limit => 100, sample_interval => 0.5,
    seed => 3) AS run_id \gset
SELECT
    cmp_ok(s.skipped, '>', 1000::bigint, 'under a limit most are skipped'),
    cmp_ok(s.transactions, '<=', 200::bigint, 'some are done'),
    cmp_ok(s.late, '<=', s.transactions, 'of which some are late'),
    is(s.failed, 0::bigint, 'skipped ones have not failed'),
    ok(s.transactions + s.skipped + s.backlog BETWEEN 4000 - 400 AND 4000 + 400, 'together they are what is due')
FROM bench.summary s
WHERE run_id = :run_id;
SELECT is((SELECT count FROM bench.statements WHERE run_id = :run_id), s.transactions, 'a skipped one executes nothing')
FROM bench.summary s
WHERE run_id = :run_id;
SELECT is_empty(format('SELECT pg_temp.disagreements(%s)', :run_id), 'the views agree');
-- Skipped ones count as transactions of the client, as in pgbench
SELECT bench.run('scr_slow', 2, transactions => 50, rate => 100000, latency_limit => 1) AS run_id \gset
SELECT
    is(s.transactions + s.skipped, 100::bigint, 'skipped ones count as transactions of the client'),
    cmp_ok(s.skipped, '>=', 50::bigint, 'most are skipped'),
    is(s.late, s.transactions, 'what takes 20 ms is late at 1 ms'),
    is(s.status, 'completed', 'and the run is complete')
FROM bench.summary s
WHERE run_id = :run_id;
SELECT is_empty(format('SELECT pg_temp.disagreements(%s)', :run_id), 'the views agree');
-- A mix under a rate; as in pgbench, all that are skipped between two transactions count for one script
SELECT bench.run('scr_slow@3,scr_b', 2, transactions => 400, rate => 100000, latency_limit => 5) AS run_id \gset
SELECT
    is(sum(transactions + skipped), 800::numeric, 'a mix: done and skipped are all'),
    cmp_ok(sum(skipped), '>', 0::numeric, 'some are skipped')
FROM bench.scripts
WHERE run_id = :run_id;
SELECT is_empty(format('SELECT pg_temp.disagreements(%s)', :run_id), 'the views agree');
-- A limit without a rate: nothing is skipped, and what is slower is late
SELECT bench.run('scr_slow', 2, transactions => 20, latency_limit => 10) AS run_id \gset
SELECT
    is(transactions, 40::bigint, 'without a rate nothing is skipped'),
    is(skipped, 0::bigint, 'not one'),
    is(late, 40::bigint, 'and all are late'),
    ok(lag_avg_ms IS NULL AND lag_max_ms IS NULL AND backlog IS NULL, 'there is no lag')
FROM bench.summary
WHERE run_id = :run_id;
SELECT bench.run('scr_slow', 2, transactions => 20, latency_limit => 60000) AS run_id \gset
SELECT is(late, 0::bigint, 'under a high limit none is late') FROM bench.summary WHERE run_id = :run_id;
SELECT is_empty(format('SELECT pg_temp.disagreements(%s)', :run_id), 'the views agree');
-- Failed ones are not late
SELECT bench.run('scr_serial', 4, transactions => 10, latency_limit => 0.001) AS run_id \gset
SELECT
    is(late, transactions, 'only what is done can be late'),
    is(transactions + failed, 40::bigint, 'the others have failed')
FROM bench.summary
WHERE run_id = :run_id;
-- Transactions as asked for, at a rate
SELECT bench.run('scr_b', 3, transactions => 40, rate => 3000) AS run_id \gset
SELECT
    is(transactions, 120::bigint, 'a rate does not change how many are done'),
    is(skipped, 0::bigint, 'without a limit'),
    is(backlog, 0::bigint, 'a run of so many has no backlog')
FROM bench.summary
WHERE run_id = :run_id;

--
-- What was asked for is written down
--
SELECT bench.run('scr_b@2,scr_c', 2, transactions => 3, rate => 5000, latency_limit => 1234.5, max_tries => 4,
    seed => 99, query_mode => 'extended', results => 'discard', variables => '{"x": 1}',
    settings => '{"work_mem": "5MB"}', tags => '{"test": "scripts"}') AS run_id \gset
SELECT
    is(workload, 'scr_b@2,scr_c', 'workload'),
    is(query_mode, 'extended', 'query_mode'),
    is(rate, 5000::double precision, 'rate'),
    is(latency_limit, 1234.5::double precision, 'latency_limit'),
    is(transactions, 3::bigint, 'transactions'),
    is(secs, NULL, 'secs'),
    is(max_tries, 4, 'max_tries'),
    is(seed, 99::bigint, 'seed'),
    is(results, 'discard', 'results'),
    is(variables, '{"x": 1}', 'variables'),
    is(settings, '{"work_mem": "5MB"}', 'settings'),
    is(tags, '{"test": "scripts"}', 'tags'),
    is(clients, 2, 'clients'),
    is(script, E'-- scr_b@2\nSELECT 1;\n-- scr_c@1\nSELECT 2;\nSELECT 3;', 'the scripts of the mix'),
    is(status, 'completed', 'status')
FROM bench.runs
WHERE run_id = :run_id;
SELECT
    is(workload, 'scr_b@2,scr_c', 'bench.summary has the mix'),
    is(transactions, 6::bigint, 'its transactions'),
    is(skipped, 0::bigint, 'skipped'),
    is(late, 0::bigint, 'late'),
    is(backlog, 0::bigint, 'backlog'),
    ok(lag_avg_ms >= 0, 'lag_avg_ms'),
    ok(lag_max_ms >= lag_avg_ms, 'lag_max_ms')
FROM bench.summary
WHERE run_id = :run_id;

-- Rows of another role's run are not to be seen
CREATE ROLE scr_nobody;
SET ROLE scr_nobody;
SELECT is((SELECT count(*) FROM bench.scripts) + (SELECT count(*) FROM bench.statements)
    + (SELECT count(*) FROM bench.errors),
    0::bigint, 'other roles see nothing of all this');
RESET ROLE;
DROP ROLE scr_nobody;

\o /dev/null
SELECT bench.drop_workload(name) FROM bench.workloads WHERE name LIKE 'scr\_%';
DROP FUNCTION public.scr_fails_twice;
DROP SEQUENCE public.scr_tries, public.scr_first, public.scr_second, public.scr_n;
DROP TABLE public.scr, public.scr_seen;
\o
SELECT * FROM finish();
