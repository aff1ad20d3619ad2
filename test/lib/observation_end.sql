-- What the pgTAP files of observation end with: \ir ../lib/observation_end.sql

-- nothing of all this made the audit wrong
SELECT is_empty(
    'SELECT run_id, counter, harness, server, reason FROM bench.audits WHERE ok = false AND run_id > ' || :first,
    'the audits find nothing');
\o /dev/null
SELECT bench.unload(name) FROM bench.fixtures;
\o
SELECT * FROM finish();
