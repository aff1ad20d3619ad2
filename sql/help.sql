--
-- bench.help: its texts are those of docs/functions.md, its arguments those of the functions
--
SELECT count(*) > 40 AS lines, min(line) FILTER (WHERE place = 1) AS first,
       count(*) FILTER (WHERE line LIKE '  run  %') AS run, max(length(line)) <= 100 AS fits
FROM bench.help() WITH ORDINALITY AS l (line, place);
\pset format unaligned
SELECT * FROM bench.help('wait') AS wait;
SELECT * FROM bench.help('BENCH.percentile(bigint, double precision)') AS percentile;
\pset format aligned

-- A mistyped name
SELECT bench.help('comapre');
SELECT bench.help('bench.pk_select');

-- Functions without a sentence or an example: none
SELECT p.proname AS function
FROM pg_proc p, LATERAL (SELECT array_agg(l) AS lines FROM bench.help(p.proname) AS l) AS h
WHERE p.pronamespace = 'bench'::regnamespace
  AND NOT (lines[1] LIKE 'bench.' || p.proname || '(%' AND 'Example:' = ANY (lines)
           AND array_to_string(lines, ' ') ~ ('Example:.*bench\.' || p.proname || '\('))
ORDER BY 1;

-- What is documented is there: none
SELECT p.proname AS function, h AS line
FROM pg_proc p, LATERAL bench.help(p.proname) AS h
WHERE p.pronamespace = 'bench'::regnamespace AND h ~* 'not (yet supported|supported yet|implemented)'
ORDER BY 1;

-- Arguments without their type or without a meaning: none
WITH shown AS (
    SELECT p.oid, l.line, l.place
    FROM pg_proc p, LATERAL bench.help(p.proname) WITH ORDINALITY AS l (line, place)
    WHERE p.pronamespace = 'bench'::regnamespace
)
SELECT p.proname AS function, a.name AS argument
FROM pg_proc p, LATERAL unnest(p.proargtypes::oid[], p.proargnames[1:p.pronargs]) AS a (type, name)
WHERE p.pronamespace = 'bench'::regnamespace
  AND NOT EXISTS (
      SELECT FROM shown s JOIN shown m ON m.oid = s.oid AND m.place = s.place + 1
      WHERE s.oid = p.oid AND starts_with(s.line, format('  %s %s', a.name, format_type(a.type, NULL)))
        AND m.line LIKE '      %')
ORDER BY 1, 2;
