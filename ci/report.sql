-- Writes what ci/compare has measured into report.md, junit.xml and bmf.json of the current folder, and prints whether
-- head is slower, or that is not decided. Variables: sides, a list of (number, 'script', '{runs of base}', '{runs of head}'); metric, margin,
-- conditions, base, head.
SELECT CASE :'metric' WHEN 'server_cpu_us' THEN 'processor time per transaction, µs' ELSE :'metric' END AS judged \gset

CREATE TEMP TABLE compared AS
SELECT s.number, s.script, s.base_runs::bigint[], s.head_runs::bigint[], m.baseline, m.candidate, m.ratio, m.ratio_low,
       m.ratio_high, m.advice,
       -- A transaction that ends with an error does not count for the metric.
       CASE WHEN r.report @? '$.comparison.statements[*] ? (@.verdict == "fails")' THEN 'fails more often' ELSE m.verdict END
           AS verdict
FROM (VALUES :sides) AS s (number, script, base_runs, head_runs),
    LATERAL CAST(bench.compare_report(s.base_runs::bigint[], s.head_runs::bigint[], 'json', :margin, paired => true)
        AS jsonb) AS r (report),
    LATERAL jsonb_to_recordset(r.report #> '{comparison,metrics}') AS m (metric text, script text, baseline float8, candidate float8,
        ratio float8, ratio_low float8, ratio_high float8, verdict text, advice text)
WHERE m.metric = :'metric' AND m.script IS NULL;

CREATE FUNCTION pg_temp.fixed(value float8, digits int) RETURNS text LANGUAGE sql AS $$
SELECT coalesce(round(value::numeric, digits)::text, '-') $$;
CREATE FUNCTION pg_temp.xml(value text) RETURNS text LANGUAGE sql AS $$
SELECT replace(replace(replace(value, '&', '&amp;'), '<', '&lt;'), '"', '&quot;') $$;
ALTER TABLE compared ADD told text;
UPDATE compared SET told = format('%s instead of %s, ratio %s (95 %% interval: %s to %s)', pg_temp.fixed(candidate, 3),
    pg_temp.fixed(baseline, 3), pg_temp.fixed(ratio, 3), pg_temp.fixed(ratio_low, 3), pg_temp.fixed(ratio_high, 3));
SELECT bool_or(verdict IN ('slower', 'fails more often')) AS slower, bool_or(verdict = 'inconclusive') AS undecided
FROM compared \gset

\o report.md
SELECT format(E'## Benchmark: %s\n', CASE WHEN :'slower' THEN 'head is slower' WHEN :'undecided' THEN 'not decided'
    ELSE 'head is not slower' END);
SELECT format(E'head: `%s`\nbase: `%s`\n\nJudged by %s, within %s %%. %s.\n', :'head', :'base', :'judged',
    pg_temp.fixed(100 * :margin, 1), :'conditions');
SELECT format(E'> [!WARNING]\n> Not decided: %s. A slower head may look like this: measure more pairs.\n',
    string_agg(format('`%s`', script), ', ' ORDER BY number))
FROM compared WHERE verdict = 'inconclusive' HAVING count(*) > 0;
SELECT E'| script | base | head | head / base | interval | verdict |\n| --- | ---: | ---: | ---: | --- | --- |';
SELECT format('| `%s` | %s | %s | %s | %s to %s | %s |', replace(script, '|', '\|'), pg_temp.fixed(baseline, 3),
    pg_temp.fixed(candidate, 3), pg_temp.fixed(ratio, 3), pg_temp.fixed(ratio_low, 3), pg_temp.fixed(ratio_high, 3),
    CASE WHEN verdict IN ('slower', 'fails more often') THEN '**' || verdict || '**' ELSE verdict END)
FROM compared ORDER BY number;
SELECT format(E'\n`%s`: %s', script, advice) FROM compared WHERE verdict = 'inconclusive' AND advice IS NOT NULL
ORDER BY number;
SELECT format(E'\n<details><summary>%s</summary>\n\n%s\n\n</details>', pg_temp.xml(script),
    bench.compare_report(base_runs, head_runs, 'markdown', :margin, paired => true))
FROM compared ORDER BY number;

\o junit.xml
SELECT format(E'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n'
    '  <testsuite name="pgbench_ext" tests="%s" failures="%s" errors="0" skipped="%s">', count(*),
    count(*) FILTER (WHERE verdict IN ('slower', 'fails more often')), count(*) FILTER (WHERE verdict = 'inconclusive'))
FROM compared;
SELECT format(E'    <testcase classname="pgbench_ext" name="%s">%s</testcase>', pg_temp.xml(script),
    CASE WHEN verdict IN ('slower', 'fails more often')
        THEN format('<failure message="%s" type="%s"/>', pg_temp.xml(:'judged' || ': ' || told), verdict)
    WHEN verdict = 'inconclusive' THEN format('<skipped message="%s"/>', pg_temp.xml(concat_ws('; ', told, advice)))
    END)
FROM compared ORDER BY number;
SELECT E'  </testsuite>\n</testsuites>';

-- Of head: the geometric means of its runs.
\o bmf.json
SELECT jsonb_pretty(jsonb_object_agg(benchmark, measures))
FROM (SELECT benchmark, jsonb_object_agg(measure, jsonb_build_object('value', value)) AS measures
      FROM (SELECT format('%s, %s client%s', s.workload, s.clients, CASE WHEN s.clients <> 1 THEN 's' END) AS benchmark,
                   m.measure, exp(avg(ln(m.value))) AS value
            FROM compared, unnest(head_runs) AS run_id JOIN bench.summary AS s USING (run_id), LATERAL (VALUES
                ('throughput', s.tps), ('latency', 1e6 * s.latency_avg_ms), ('latency-p50', 1e6 * s.latency_p50_ms),
                ('latency-p95', 1e6 * s.latency_p95_ms), ('latency-p99', 1e6 * s.latency_p99_ms),
                ('server-cpu', 1e3 * s.server_cpu_us)) AS m (measure, value)
            WHERE m.value > 0
            GROUP BY 1, 2) AS means
      GROUP BY 1) AS benchmarks;
\o
SELECT CASE WHEN :'slower' THEN 'slower' WHEN :'undecided' THEN 'undecided' ELSE 'not slower' END;
