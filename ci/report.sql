-- Writes what ci/compare has measured into report.md, junit.xml and bmf.json of the current folder, and prints whether
-- head is slower, or that is not decided. Variables: sides, a list of (number, other side, 'script', '{duels}'); metric, margin,
-- conditions, clients, base, head.
SELECT CASE :'metric' WHEN 'server_cpu_us' THEN 'processor time per transaction, µs' ELSE :'metric' END AS judged \gset

CREATE TEMP TABLE measured AS
SELECT s.number, s.side, s.script, m.*
FROM (VALUES :sides) AS s (number, side, script, duels), LATERAL bench.compare_duels(s.duels::bigint[], :margin) AS m;

CREATE TEMP TABLE compared AS
SELECT number, script, a, b, ratio, ratio_low, ratio_high, advice,
       -- A transaction that ends with an error does not count for the metric.
       CASE WHEN (number, 'more') IN (SELECT number, verdict FROM measured WHERE side = 'head' AND metric = 'failed')
           THEN 'fails more often' ELSE verdict END AS verdict
FROM measured WHERE side = 'head' AND metric = :'metric';

CREATE FUNCTION pg_temp.fixed(value float8, digits int) RETURNS text LANGUAGE sql AS $$
SELECT coalesce(round(value::numeric, digits)::text, '-') $$;
CREATE FUNCTION pg_temp.xml(value text) RETURNS text LANGUAGE sql AS $$
SELECT replace(replace(replace(value, '&', '&amp;'), '<', '&lt;'), '"', '&quot;') $$;
ALTER TABLE compared ADD told text;
UPDATE compared SET told = format('%s instead of %s, ratio %s (95 %% interval: %s to %s)', pg_temp.fixed(b, 3), pg_temp.fixed(a, 3),
    pg_temp.fixed(ratio, 3), pg_temp.fixed(ratio_low, 3), pg_temp.fixed(ratio_high, 3));
SELECT bool_or(verdict IN ('slower', 'fails more often')) AS slower, bool_or(verdict = 'inconclusive') AS undecided
FROM compared \gset

\o report.md
SELECT format(E'## Benchmark: %s\n', CASE WHEN :'slower' THEN 'head is slower' WHEN :'undecided' THEN 'not decided'
    ELSE 'head is not slower' END);
SELECT format(E'head: `%s`\nbase: `%s`\n\nJudged by %s, within %s %%. %s.\n', :'head', :'base', :'judged',
    pg_temp.fixed(100 * :margin, 1), :'conditions');
SELECT format(E'> [!WARNING]\n> Not decided: %s. A slower head may look like this: measure more duels.\n',
    string_agg(format('`%s`', script), ', ' ORDER BY number))
FROM compared WHERE verdict = 'inconclusive' HAVING count(*) > 0;
SELECT E'| script | base | head | head / base | interval | verdict |\n| --- | ---: | ---: | ---: | --- | --- |';
SELECT format('| `%s` | %s | %s | %s | %s to %s | %s |', replace(script, '|', '\|'), pg_temp.fixed(a, 3), pg_temp.fixed(b, 3),
    pg_temp.fixed(ratio, 3), pg_temp.fixed(ratio_low, 3), pg_temp.fixed(ratio_high, 3),
    CASE WHEN verdict IN ('slower', 'fails more often') THEN '**' || verdict || '**' ELSE verdict END)
FROM compared ORDER BY number;
SELECT format(E'\n`%s`: %s', script, advice) FROM compared WHERE verdict = 'inconclusive' AND advice IS NOT NULL
ORDER BY number;
SELECT format(E'\nBase against a second server of base, by `%s`: %s to %s, which equal servers differ by.', script,
    pg_temp.fixed(ratio_low, 3), pg_temp.fixed(ratio_high, 3))
FROM measured WHERE side = 'again' AND metric = :'metric';
SELECT format(E'\n<details><summary>%s</summary>\n\n| metric | base | head | head / base | interval | verdict |\n'
    '| --- | ---: | ---: | ---: | --- | --- |\n%s\n\n</details>', pg_temp.xml(script), string_agg(format(
        '| %s | %s | %s | %s | %s to %s | %s |', metric, pg_temp.fixed(a, 4), pg_temp.fixed(b, 4), pg_temp.fixed(ratio, 3),
        pg_temp.fixed(ratio_low, 3), pg_temp.fixed(ratio_high, 3), verdict), E'\n'))
FROM measured WHERE side = 'head' AND a IS NOT NULL GROUP BY number, script ORDER BY number;

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

-- Of head, over all duels.
\o bmf.json
SELECT jsonb_pretty(jsonb_object_agg(benchmark, measures))
FROM (SELECT format('%s, %s client%s', script, :clients, CASE WHEN :clients <> 1 THEN 's' END) AS benchmark,
             jsonb_object_agg(measure, jsonb_build_object('value', value)) AS measures
      FROM measured, LATERAL (VALUES
          ('latency_avg_ms', 'throughput', :clients * 1e3 / nullif(b, 0)), ('latency_avg_ms', 'latency', 1e6 * b),
          ('latency_p50_ms', 'latency-p50', 1e6 * b), ('latency_p95_ms', 'latency-p95', 1e6 * b),
          ('latency_p99_ms', 'latency-p99', 1e6 * b), ('server_cpu_us', 'server-cpu', 1e3 * b)) AS m (name, measure, value)
      WHERE side = 'head' AND name = metric AND value > 0
      GROUP BY 1) AS benchmarks;
\o
SELECT CASE WHEN :'slower' THEN 'slower' WHEN :'undecided' THEN 'undecided' ELSE 'not slower' END;
