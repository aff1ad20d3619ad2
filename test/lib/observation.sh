# shellcheck shell=bash
# What the tests of observation have in common: source this file after common.sh.
#
#   finding RUN TOPIC, topics RUN, causes RUN    what bench.findings says
#   told RUN TOPIC REGEX DESC, said RUN CONDITION DESC
#   sound RUN DESC, all_waits RUN DESC, no_leftovers DESC    what holds of every run that was observed
#   begin ARGUMENTS [SAMPLES]    starts a run and waits for samples; RUN is its id
#   finish                       waits for its end
#   checkpoints                  a run with three checkpoints

# Findings of a run: all that a topic says, or what it is said to coincide with.
finding() { sql "SELECT finding FROM bench.findings($1) WHERE topic = '$2'"; }
topics() { sql "SELECT string_agg(DISTINCT topic, ' ' ORDER BY topic) FROM bench.findings($1)"; }
causes() {
    sql "SELECT string_agg(DISTINCT c ->> 'cause', ', ')
        FROM bench.findings($1), jsonb_array_elements(figures -> 'coincide') AS c WHERE topic = 'dip'"
}
told() { # RUN TOPIC REGEX DESCRIPTION
    like "$(finding "$1" "$2")" "$3" "$4"
}
said() { # RUN SQL-CONDITION-ON-bench.findings DESCRIPTION
    is "$(sql "SELECT count(*) > 0 FROM bench.findings($1) WHERE $2")" t "$3"
    [ "$(sql "SELECT count(*) > 0 FROM bench.findings($1) WHERE $2")" = t ] ||
        diag "$(sql "SELECT topic, finding, figures FROM bench.findings($1)")"
}

# What holds of every run that was observed, however it ended.
sound() { # RUN DESCRIPTION
    is "$(sql "SELECT count(*) FROM (SELECT * FROM bench.samples UNION ALL SELECT * FROM bench.warmup_samples) s
        WHERE run_id = $1 AND
                   (abs((SELECT sum(value::float8) FROM jsonb_each_text(waits)) - 1) > 1e-9
                    OR least(wal_bytes, wal_records, wal_fpi, wal_buffers_full, checkpoints, buffers_checkpoint,
                    buffers_clean, buffers_backend, blks_hit, blks_read,
                             temp_files, temp_bytes, cpu_user, cpu_system, cpu_iowait, cpu_steal, cpu_idle,
                             memory_available_bytes, disk_read_bytes, disk_written_bytes, throttled_secs) < 0)")" 0 \
        "$2: shares add up to 1 and nothing is negative"
    is "$(sql "SELECT count(*) FROM bench.relations WHERE run_id = $1 AND
                   least(bytes_before, bytes_after, live, dead, inserted, updated, hot_updated, deleted,
                   mod_since_analyze, seq_scan, seq_tup_read, idx_scan, vacuums, autovacuums, analyzes,
                   autoanalyzes) < 0")" 0 \
        "$2: no table has negative counts"
    is "$(sql "SELECT count(*) FROM bench.events WHERE run_id = $1 AND (started > ended OR event < 1)")" 0 \
        "$2: events end after they begin"
    is "$(sql "SELECT bool_and(length(bench.report($1, format)) > 300)
        FROM unnest('{text,markdown,json,html}'::text[]) AS format" \
        "SELECT count(*) >= 0 FROM bench.findings($1)" | paste -sd' ')" 't t' "$2: reports and findings can be made"
}
all_waits() { is "$(sql "SELECT abs(sum(share) - 1) < 1e-9 FROM bench.waits WHERE run_id = $1")" t \
    "$2: the run's waits add up to 1"; }
no_leftovers() { is "$(find "$PGHOST/data/pg_wal" -name 'xlogtemp.*')" '' "$1: no file is left in pg_wal"; }

begin() { RUN=$(sql "SELECT bench.start($1)") &&
    eventually 20 "SELECT count(*) >= ${2:-4} FROM bench.samples WHERE run_id = $RUN"; }
finish() { sql "SELECT bench.wait($RUN, 120)" >/dev/null; }

# Full-page images follow each checkpoint; the pages have to be there already.
checkpoints() {
    sql CHECKPOINT
    begin "'pk_update', clients => 4, secs => 24, warmup => 6, sample_interval => 0.25" 20
    # Each try begins at another phase of the intervals, and of the statistics that sessions send once a second.
    sleep "0.$((RANDOM % 90 + 10))"
    for _ in 1 2 3; do
        sql CHECKPOINT
        sleep 5.5
    done
    finish
}
