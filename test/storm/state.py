"""What is to be seen of the server when it is quiet."""

import os
import time
from dataclasses import dataclass, field

import server

# Bare facts of the runs after one, each as bench.runs has it, beside what was written of it.
RUNS = """
SELECT r.run_id, r.status, r.error, r.role, r.workload, r.clients, r.secs, r.transactions, r.warmup, l.segment, r.sweep_id,
       (SELECT s.segment FROM bench_internal.sweep_log s WHERE s.sweep_id = r.sweep_id) AS sweep_segment,
       (r.tags ->> 'storm')::int AS statement, r.origin IS NOT NULL AS imported,
       extract(epoch FROM r.started_at) AS started, extract(epoch FROM r.finished_at) AS finished,
       s.samples, s.sampled, s.failed, s.skipped, s.sampled_secs, s.gaps,
       (SELECT sum(h.count) FROM bench.latencies h WHERE h.run_id = r.run_id) AS in_histogram,
       coalesce((SELECT a.harness FROM bench_internal.audit_log a
                 WHERE a.run_id = r.run_id AND a.node = 0 AND a.counter = 'committed: drain'), 0) AS drained,
       (SELECT sum(c.transactions) FROM bench_internal.script_log c WHERE c.run_id = r.run_id) AS in_scripts
FROM bench.runs r JOIN bench_internal.run_log l USING (run_id), LATERAL (
    SELECT count(*) AS samples, sum(x.transactions) AS sampled, sum(x.failed) AS failed, sum(x.skipped) AS skipped,
           sum(x.secs) AS sampled_secs, count(*) FILTER (WHERE abs(x.elapsed - x.secs - x.before) > 1e-6) AS gaps
    FROM (SELECT y.*, lag(y.elapsed, 1, 0) OVER (ORDER BY y.elapsed) AS before FROM bench.samples y WHERE y.run_id = r.run_id) x) s
WHERE r.run_id > {after} ORDER BY r.run_id"""

ACCUSATIONS = """
SELECT r.run_id, a.counter, a.harness, a.server, a.reason
FROM bench_internal.run_log r, LATERAL bench.audit(r.run_id) a
WHERE r.run_id > {after} AND r.status NOT IN ('starting', 'running') AND NOT a.ok ORDER BY 1, 2"""

SWEEPS = """
SELECT s.sweep_id, s.status, s.error, s.role, l.segment, (s.tags ->> 'storm')::int AS statement, s.runs, s.completed,
       extract(epoch FROM coalesce(s.resumed_at, s.started_at)) AS started, extract(epoch FROM s.finished_at) AS finished,
       l.system_settings IS NOT NULL AS to_be_put_back
FROM bench.sweeps s JOIN bench_internal.sweep_log l USING (sweep_id)
WHERE coalesce(s.resumed_at, s.started_at) > to_timestamp({since})"""

LOCKS = """
SELECT l.pid, l.locktype, l.mode, l.granted, l.relation::regclass::text AS relation, a.backend_type, a.query
FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)
WHERE l.pid <> pg_backend_pid() AND a.backend_type IS DISTINCT FROM 'autovacuum worker'"""

BALANCES = """
SELECT (SELECT sum(abalance) FROM bench_data.pgbench_accounts) AS accounts, (SELECT sum(tbalance) FROM bench_data.pgbench_tellers) AS tellers,
       (SELECT sum(bbalance) FROM bench_data.pgbench_branches) AS branches, (SELECT sum(delta) FROM bench_data.pgbench_history) AS history"""

CONDITIONS = "SELECT f.name, c.condition, c.detail FROM unnest('{orders,tpcb}'::text[]) AS f (name), bench.check(f.name) AS c WHERE NOT c.ok"

SETTINGS = "SELECT name, setting FROM pg_settings WHERE context <> 'internal' AND name <> 'application_name'"


def lasting_locks(server):
    """Locks that are held twice, a moment apart: of an autovacuum worker that ends between the reading of the locks and that
    of the processes nobody knows what it was."""
    locks = server.rows(LOCKS)
    if locks:
        time.sleep(0.5)
        again = server.rows(LOCKS)
        locks = [lock for lock in locks if lock in again]
    return locks


@dataclass
class State:
    """At the end of a round. Times are seconds of the machine's clock."""
    began: float = 0.0
    ended: float = 0.0
    runs: list = field(default_factory=list)
    accusations: list = field(default_factory=list)
    sweeps: list = field(default_factory=list)
    earlier: dict = field(default_factory=dict)     # status by run, at the round's begin
    now: dict = field(default_factory=dict)         # the same at its end
    called: dict = field(default_factory=dict)      # runs that calls have returned, with the statement's number
    workers: dict = field(default_factory=dict)     # of the extension, with their titles
    segments: list = field(default_factory=list)
    staging: list = field(default_factory=list)     # schemas and open load_log rows
    staging_after_load: list = field(default_factory=list)
    locks: list = field(default_factory=list)
    temporary_files: list = field(default_factory=list)
    settings: dict = field(default_factory=dict)
    auto_conf: str = ""
    balances: dict = field(default_factory=dict)
    fixtures: list = field(default_factory=list)    # name, schema, rows, counted
    conditions: list = field(default_factory=list)  # of bench.check, those that do not hold
    identity_before: list = field(default_factory=list)
    identity: list = field(default_factory=list)
    log: str = ""
    hung: list = field(default_factory=list)        # statements, and what the server showed of them
    unquiet: str = ""                               # what had not ended in time
    answers: bool = True
    expected: tuple = ("", {})                      # postgresql.auto.conf and settings, as they were


def staging():
    return [row["name"] for row in server.rows(
        "SELECT nspname::text AS name FROM pg_namespace WHERE nspname ~ '^bench_loading' "
        "UNION ALL SELECT format('load %s of %s', load_id, fixture) FROM bench_internal.load_log "
        "WHERE status = 'running' ORDER BY 1")]


def settings():
    return {row["name"]: row["setting"] for row in server.rows(SETTINGS)}


def statuses():
    return {row["run_id"]: row["status"] for row in server.rows("SELECT run_id, status FROM bench.runs")}


def loaded(excepted):
    """Fixtures whose number of rows no workload changes, with what they have."""
    found = server.rows("SELECT name, schema, rows FROM bench.fixtures WHERE name IN ('pk', 'name') "
                        "AND relations[1]::oid IN (SELECT oid FROM pg_class)")
    for row in found:
        row["counted"] = int(server.sql(f"SELECT count(*) FROM {row['schema']}.{row['name']}"))
    return [row for row in found if row["schema"] not in excepted]


def last_run():
    return int(server.sql("SELECT coalesce(max(run_id), 0) FROM bench.runs"))


def read(state, after, has_balances):
    """Fills in what is read from the server; the rest is the round's own. Waits for what is put back after a crash."""
    deadline = time.time() + 20
    while time.time() < deadline:
        state.auto_conf, state.settings = server.auto_conf(), settings()
        to_put_back = server.sql("SELECT count(*) FROM bench_internal.sweep_log WHERE system_settings IS NOT NULL")
        if state.auto_conf == state.expected[0] and state.settings == state.expected[1] and to_put_back == "0":
            break
        time.sleep(0.3)
    state.runs = server.rows(RUNS.format(after=after))
    state.accusations = server.rows(ACCUSATIONS.format(after=after))
    state.sweeps = server.rows(SWEEPS.format(since=state.began))
    state.now = statuses()
    state.staging = staging()
    if state.staging:
        # The next load removes what crashes have left.
        server.try_sql("SELECT bench.load('name', 10, options => '{\"schema\": \"storm_sweeps\"}')", timeout=60)
        state.staging_after_load = staging()
    state.locks = lasting_locks(server)
    if has_balances:
        state.balances = server.rows(BALANCES)[0]
        state.conditions = server.rows(CONDITIONS)
    state.fixtures = loaded({"storm_disk"})
    state.workers = {pid: name for pid, name in server.processes().items() if name.startswith("pgbench_ext")}
    state.segments = server.segments()
    state.temporary_files = [os.path.relpath(path, server.DATA) for path in server.temporary_files()]
    state.identity = server.identity()
