#!/usr/bin/env bash
# Names of wait events that crates/findings knows: this server has them. From 17 on its view says so, before that the
# texts in its program. And what sessions write and extend by themselves is counted on each version.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

# Backends write by themselves where the background writer does not and nothing is free.
faults_start 'bgwriter_lru_maxpages = 0' 'shared_buffers = 2MB' 'checkpoint_timeout = 1h'
VERSION=$(($(sql 'SHOW server_version_num') / 10000))

table=crates/findings/src/wait_events.rs
events=$(sed -nE 's/^    named\("(\w+)", "(\w+)", "(\w+)", .*/\1 \2 \3/p' $table)
is "$(wc -l <<<"$events")" "$(grep -c '^    named(' $table)" 'every line of the table is read'
is "$(wc -l <<<"$events")" "$(sed -nE 's/.*\[WaitEvent; ([0-9]+)\].*/\1/p' $table)" \
    'and these are all of it'
if [ "$VERSION" -ge 17 ]; then
    known=$(sql "SELECT type, name FROM pg_wait_events" | tr '|' ' ')
    has() { grep -qxF "$1 $2" <<<"$known"; }
else
    known=$(tr -c '[:alnum:]' '\n' <"$("$PG_CONFIG" --bindir)/postgres" | sort -u)
    has() { grep -qxF "$2" <<<"$known"; }
fi
while read -r class before since; do
    name=$([ "$VERSION" -ge 17 ] && echo "$since" || echo "$before")
    ok "PostgreSQL $VERSION has wait event $class:$name" has "$class" "$name"
done <<<"$events"
ok 'a name that it does not have is found out' eval '! has IO WALSynch'

# What findings know as limits, in lower case; a star stands for any end. Before 17 the types are not known, and a name
# may be kept as the end of a longer one.
patterns=$(grep -E '^ *events: &\[' crates/findings/src/waits.rs | grep -oE '"[^"]+"' | tr -d '"')
ok 'the patterns of limits are read' [ "$(wc -l <<<"$patterns")" -ge 20 ]
if [ "$VERSION" -ge 17 ]; then
    names=$(tr ' ' ':' <<<"$known" | tr '[:upper:]' '[:lower:]')
    patterns=$(sed -E 's/\*$/.*/' <<<"$patterns")
else
    names=$(tr '[:upper:]' '[:lower:]' <<<"$known")
    patterns=$(sed -E 's/^[a-z]+://; /^\*$/d; s/\*$/.*/; s/^/.*/' <<<"$patterns")
fi
[ "$VERSION" -ge 18 ] || patterns=$(grep -vF aioiocompletion <<<"$patterns")
# Locks on the contents of pages have a class of their own from 19 on.
if [ "$VERSION" -ge 19 ]; then
    patterns=$(grep -vE '^(lwlock:buffercontent|bufferpin:)' <<<"$patterns")
else
    patterns=$(grep -vE '^buffer:' <<<"$patterns")
fi
[ "$VERSION" -ge 16 ] || patterns=$(grep -vF spindelay <<<"$patterns")
for pattern in $patterns; do
    ok "PostgreSQL $VERSION has a wait event like $pattern" grep -qxE "$pattern" <<<"$names"
done

# What sessions write.
sql "SELECT bench.create_workload('grow',
        'INSERT INTO public.grown SELECT repeat(''x'', 1800) FROM generate_series(1, 40)')" \
    'CREATE TABLE grown (filler text)' CHECKPOINT >/dev/null
sql 'ALTER TABLE grown ALTER filler SET STORAGE PLAIN'
RUN=$(sql "SELECT bench.start('grow', clients => 2, transactions => 100, sample_interval => 0.1)")
# PostgreSQL 15 counts at the checkpointer's next look.
status_is "$RUN" completed 'a table that grows'
pages=$(sql "SELECT pg_relation_size('grown') / 8192")
ok "a table that grows: by $pages pages" [ "$pages" -ge 2000 ]
written="SELECT coalesce(sum(buffers_backend), 0) FROM bench.samples WHERE run_id = $RUN"
if [ "$VERSION" -ge 16 ]; then
    is "$(sql "SELECT ($written) BETWEEN $pages AND 3 * $pages")" t \
        "a table that grows: buffers_backend has its pages, and those written again ($(sql "$written"))"
else
    skip 'PostgreSQL 15 counts them late' "a table that grows: buffers_backend has its pages ($(sql "$written"))"
fi
nothing_left 'at the end'
log_is_clean
done_testing
