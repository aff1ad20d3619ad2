#!/usr/bin/env bash
# A benchmark made from the statements of an application does the same work: pgbench drives a web shop, which is
# captured meanwhile, and run. Statements, rows and blocks per call are compared, never times.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/shop.sh
. test/lib/shop.sh

faults_start "shared_preload_libraries = 'pg_stat_statements'"
sql 'CREATE EXTENSION pg_stat_statements'
# Large enough that the writes of some seconds change little.
shop_load 0.1 || exit

session capture "SELECT * FROM bench.capture('shop', secs => 14, statements => 100,
    options => '{\"transactions\": false}')"
eventually 10 "SELECT status = 'capturing' FROM bench.captures WHERE name = 'shop'"
shop_drive 10 4 && OUT=driven
is "$OUT" driven 'the application sent its statements without an error'
# It also tries the statements.
ended capture 180
is "$(sql "SELECT status, error FROM bench.captures WHERE name = 'shop'")" 'completed|' 'the capture is complete'

# All but those that shop_drive asks for sizes.
is "$(sql "SELECT count(*) >= 60 FROM bench.capture_statements WHERE capture = 'shop'")" t 'all statements were seen'
is "$(sql "SELECT count(*) FILTER (WHERE kept) >= 30, count(*) FILTER (WHERE NOT kept AND reason IS NULL),
                  round(sum(share)::numeric, 6) FROM bench.capture_statements WHERE capture = 'shop'")" 't|0|1.000000' \
    'thirty and more are kept, each other has a reason, the shares of time add up'
is "$(sql "SELECT CASE WHEN sum(exec_ms) FILTER (WHERE kept) >= 0.9 * sum(exec_ms) THEN 'kept'
                  ELSE string_agg(concat_ws(' ', share, reason, query), E'\n' ORDER BY number)
                      FILTER (WHERE NOT kept) END
           FROM bench.capture_statements WHERE capture = 'shop' AND query ~* '^(SELECT|WITH)'")" kept \
    'nine tenths of the time of what reads and more are kept'

run=$(sql "SELECT bench.run('shop', clients => 4, secs => 10)")
is "$(sql "SELECT status FROM bench.runs WHERE run_id = $run")" completed 'the capture runs'
is "$(sql "SELECT sqlstate, count, message FROM bench.errors WHERE run_id = $run")" '' 'without an error'

# A figure fits if it is within a tenth, or within what the chance of rare calls leaves open. On large tables, nine
# tenths of the time fit. Here, the writes of ten seconds are a large part of the rows of the last days, which some
# statements look for: these took less on average than they do at the end, with any values.
share_that_fits() { # rows|blocks
    sql "SELECT round((sum(exec_ms) FILTER (WHERE fits) / sum(exec_ms))::numeric, 3)
        FROM (SELECT s.exec_ms, abs(${1}_replayed - ${1}_captured) <= greatest(0.1 * ${1}_captured, 0.05) AS fits
              FROM bench.fidelity($run) f JOIN bench.capture_statements s USING (workload)
              WHERE s.capture = 'shop') f"
}
rows=$(share_that_fits rows) blocks=$(share_that_fits blocks)
diag "rows per call fit for $rows of the time, blocks per call for $blocks"
is "$(awk -v rows="$rows" -v blocks="$blocks" 'BEGIN { print (rows >= 0.8 && blocks >= 0.8) }')" 1 \
    'rows and blocks per call are those of the application for most of the time'
is "$(sql "SELECT count(*) FROM bench.fidelity($run)
           WHERE calls > 0 AND (score IS NULL OR score NOT BETWEEN 0 AND 1)")" 0 'each statement called has a score'
done_testing
