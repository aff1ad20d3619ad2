-- Captures: arguments, and what is said of a server without pg_stat_statements.
\set VERBOSITY default
SELECT bench.capture(NULL);
SELECT bench.capture('');
SELECT bench.capture('a@b', 0);
SELECT bench.capture('c', -1);
SELECT bench.capture('c', 0, 0);
SELECT bench.capture('c', 0, 129);
SELECT bench.capture('c', 0, options => '[]');
SELECT bench.capture('c', 0, options => '{"write": true}');
SELECT bench.capture('c', 0, options => '{"writes": 1}');
SELECT bench.capture('c', 0, options => '{"by": "size"}');
SELECT bench.capture('c', 0, options => '{"roles": 7}');
SELECT bench.capture('c', 0, options => '{"list_length": 0}');
SELECT bench.capture('c', 0, options => '{"exclude": ["%pg_sleep%", 0.5]}');
SELECT bench.wait_capture('c');
SELECT bench.wait_capture(NULL);
SELECT bench.wait_capture('c', -1);
SELECT bench.stop_capture('c');
SELECT bench.drop_capture('c');
SELECT bench.fidelity(NULL);
SELECT bench.fidelity(-1);
SELECT bench.fidelity_parts(NULL);
SELECT bench.fidelity_parts(-1);
