#!/usr/bin/env python3
"""Shows that the invariants can be violated: each check gets states that it must accept, and doctored ones that it must not."""

import copy
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import invariants  # noqa: E402
import plan  # noqa: E402
from faults import Event  # noqa: E402
from state import State  # noqa: E402

NOW = 1000.0
tests = failures = 0


def ok(passed, description, seen=""):
    global tests, failures
    tests += 1
    failures += not passed
    print(f"{'' if passed else 'not '}ok {tests} - {description}")
    if not passed:
        print(f"# {seen}")


def run(**changes):
    return dict({
        "run_id": 7, "status": "completed", "error": None, "role": "postgres", "workload": "pk_update", "clients": 2, "secs": 2.0,
        "transactions": None, "warmup": 0, "segment": 42, "sweep_id": None, "sweep_segment": None, "statement": 1001,
        "imported": False, "started": NOW + 1, "finished": NOW + 3, "samples": 2, "sampled": 300, "failed": 0, "skipped": 0,
        "sampled_secs": 2.0, "gaps": 0, "in_histogram": 300, "drained": 0, "in_scripts": 300}, **changes)


def sweep(**changes):
    return dict({"sweep_id": 3, "status": "completed", "error": None, "role": "postgres", "segment": 43, "statement": 1002, "runs": 2,
                 "completed": 2, "started": NOW + 1, "finished": NOW + 5, "to_be_put_back": False}, **changes)


def state(**changes):
    settings = ("", {"work_mem": "4096"})
    whole = State(
        began=NOW, ended=NOW + 10, runs=[run()], sweeps=[sweep()], earlier={6: "crashed"}, now={6: "crashed", 7: "completed"},
        called={7: 1001}, settings=dict(settings[1]), auto_conf="", expected=settings, identity_before=[1, 2], identity=[1, 2],
        balances={"accounts": 5, "tellers": 5, "branches": 5, "history": 5},
        fixtures=[{"name": "pk", "schema": "bench_data", "rows": 10, "counted": 10}],
        log="2026 [1] client backend 57014 ERROR:  canceling statement due to user request")
    for name, value in changes.items():
        setattr(whole, name, value)
    return whole


def fault(name, *effects, at=NOW + 2, secs=0.1, **target):
    return Event(name, at, at + secs, frozenset(effects), **target)


def holds(description, events=(), **changes):
    found = invariants.violations(state(**changes), list(events))
    ok(not found, f"accepted: {description}", [str(violation) for violation in found])


def violated(invariant, description, events=(), **changes):
    found = invariants.violations(state(**changes), list(events))
    ok(any(violation.invariant == invariant for violation in found), f"{invariant}: {description}", [str(v) for v in found])


ERROR = {"sqlstate": "57P01", "message": "client terminated"}
LOST = dict(status="incomplete", error=ERROR)
CRASHED = dict(status="crashed", finished=None, in_histogram=None, in_scripts=None)

holds("a quiet server")

violated("true final status", "a run left running", runs=[run(status="running", finished=None)])
violated("true final status", "a run left starting", runs=[run(status="starting", started=None, finished=None)])
violated("true final status", "crashed without a crash", runs=[run(**CRASHED)])
violated("true final status", "crashed after a client was terminated", [fault("terminate", "trouble", kind="client", segments={42})], runs=[run(**CRASHED)])
holds("crashed after kill -9", [fault("kill", "down")], runs=[run(**CRASHED)], identity=[1, 3])
violated("true final status", "crashed long before the kill", [fault("kill", "down", at=NOW + 9)],
         runs=[run(**dict(CRASHED, finished=NOW + 3))], identity=[1, 3])
violated("true final status", "incomplete with nothing that explains it", runs=[run(**LOST)])
violated("true final status", "incomplete after another run's client was terminated",
         [fault("terminate", "trouble", kind="client", segments={41})], runs=[run(**LOST)])
holds("incomplete after its client was terminated", [fault("terminate", "trouble", kind="client", segments={42})], runs=[run(**LOST)])
violated("true final status", "incomplete without an error", [fault("terminate", "trouble", kind="client", segments={42})],
         runs=[run(status="incomplete")])
LOCKED = dict(status="failed", started=None, samples=0, sampled=None, in_histogram=None, in_scripts=None,
              error={"sqlstate": "55P03", "message": "canceling statement due to lock timeout"})
holds("failed to begin while the results were locked", [fault("lock results", "stall", "locked")], runs=[run(**LOCKED)])
violated("true final status", "incomplete, for the results were locked", [fault("lock results", "stall", "locked")],
         runs=[run(**dict(LOCKED, status="incomplete", started=NOW + 1))])
violated("true final status", "completed with an error", runs=[run(error=ERROR)])
violated("true final status", "canceled, and nobody has", [fault("stop", "stall")], runs=[run(status="canceled", error=ERROR)])
holds("canceled by bench.stop", [fault("bench.stop", "end", run=7)], runs=[run(status="canceled", error=ERROR)])
violated("true final status", "canceled by another run's bench.stop", [fault("bench.stop", "end", run=8)],
         runs=[run(status="canceled", error=ERROR)])
violated("true final status", "completed although its client was terminated", [fault("terminate", "trouble", kind="client", segments={42})])
violated("true final status", "completed although the server went down", [fault("kill", "down")], identity=[1, 3])
violated("true final status", "a status that changes later", now={6: "completed", 7: "completed"})
violated("true final status", "a run that was begun and is not there", now={6: "crashed"})
violated("true final status", "a sweep left running", sweeps=[sweep(status="running")])
violated("true final status", "a sweep that crashed without a crash", sweeps=[sweep(status="crashed")])
violated("true final status", "a sweep completed without all of its runs", sweeps=[sweep(completed=1)])

violated("sums", "a sample missing", runs=[run(samples=1, sampled=150, sampled_secs=1.0)])
violated("sums", "a histogram missing", runs=[run(in_histogram=None)])
violated("sums", "a transaction too many in the scripts", runs=[run(in_scripts=301)])
violated("sums", "a gap between samples", runs=[run(gaps=1)])
violated("sums", "samples of less than its time", runs=[run(sampled_secs=1.9)])
violated("sums", "transactions that nobody made", runs=[run(secs=None, transactions=100)])
holds("as many transactions as were asked for", runs=[run(secs=None, transactions=150)])
GIVEN_UP = dict(LOST, sampled=200, error={"sqlstate": "55P03", "message": "…", "detail": "Not written: bench.samples."})
holds("samples given up under a lock, and told", [fault("lock results", "trouble", "locked")], runs=[run(**GIVEN_UP)])
violated("sums", "samples given up, and no lock", runs=[run(**GIVEN_UP)], events=[fault("disk", "trouble")])
violated("sums", "samples given up under a lock without a word", runs=[run(**dict(GIVEN_UP, error=LOST["error"]))],
         events=[fault("lock results", "trouble", "locked")])
holds("a histogram missing with a full disk", [fault("disk", "trouble", "full")], runs=[run(**dict(LOST, in_histogram=None))])
violated("sums", "a histogram missing where a client was terminated", [fault("terminate", "trouble", kind="client", segments={42})],
         runs=[run(**dict(LOST, in_histogram=None))])
violated("sums", "TPC-B's balances", balances={"accounts": 5, "tellers": 5, "branches": 4, "history": 5})
violated("sums", "orders out of order",
         conditions=[{"name": "orders", "condition": "6: an order has as many lines as it counts", "detail": "order 3001: 4 lines, counts 5"}])
violated("sums", "a fixture with rows missing", fixtures=[{"name": "pk", "schema": "bench_data", "rows": 10, "counted": 9}])

LINE = {"run_id": 7, "counter": "n_tup_upd", "harness": 300, "server": 301, "reason": "rows"}
violated("audits", "an accusation", accusations=[LINE])
violated("audits", "an accusation, and a stopped client is no excuse", [fault("stop", "stall")], accusations=[LINE])
violated("audits", "misplaced transactions", accusations=[dict(LINE, counter="misplaced")])
holds("misplaced transactions while the coordinator was stopped", [fault("stop", "stall")], accusations=[dict(LINE, counter="misplaced")])

violated("nothing left", "a worker", workers={5: "pgbench_ext client"})
violated("nothing left", "a segment", segments=[12345])
violated("nothing left", "a staging schema with no leader lost", staging=["bench_loading_1"])
violated("nothing left", "a staging schema that outlives the next load", [fault("kill", "down")], identity=[1, 3], runs=[],
         staging=["bench_loading_1"], staging_after_load=["bench_loading_1"])
holds("a staging schema of a leader that was terminated", [fault("terminate", "leader", kind="load")], staging=["bench_loading_1"])
violated("nothing left", "a lock", locks=[{"pid": 5, "mode": "AccessExclusiveLock"}])
violated("nothing left", "a temporary file", temporary_files=["base/pgsql_tmp/pgsql_tmp5.0"])
violated("server parameters", "a setting", settings={"work_mem": "64"})
violated("server parameters", "postgresql.auto.conf", auto_conf="commit_delay = '10'\n")
violated("server parameters", "a sweep's, to be put back", sweeps=[sweep(to_be_put_back=True)])

for line in ("server process (PID 5) was terminated by signal 11: Segmentation fault", "PANIC:  cannot abort transaction 7",
             "WARNING:  buffer refcount leak: [1] (rel=base/5/16384)", "WARNING:  relcache reference leak: relation \"pk\" not closed",
             "[5] client backend XX000 ERROR:  something that cannot be", "thread 'main' panicked at src/lib.rs:1",
             'ERROR:  duplicate key value violates unique constraint "relation_log_pkey"'):
    violated("log", line, log=line)
violated("log", "signal 9 that nobody has sent", log="LOG:  client process (PID 5) was terminated by signal 9: Killed")
holds("signal 9 of a kill", [fault("kill", "down", at=NOW + 9)], identity=[1, 3],
      log="LOG:  background worker \"pgbench_ext client\" (PID 5) was terminated by signal 9: Killed")
violated("log", "signal 11 beside a kill", [fault("kill", "down", at=NOW + 9)], identity=[1, 3],
         log="LOG:  server process (PID 5) was terminated by signal 11: Segmentation fault")
violated("server", "a restart that nobody has caused", identity=[1, 3])
violated("server", "no answer", answers=False)
violated("quiet", "a worker that does not end", unquiet="5 pgbench_ext coordinator")
violated("quiet", "a call that does not return", hung=["SELECT bench.wait(7)"])

drawn = [plan.draw("a seed", 3) for _ in range(2)]
ok(drawn[0] == drawn[1], "a seed repeats its schedule")
ok(plan.draw("another", 3) != drawn[0], "another seed has another")
names = {fault.name for number in range(400) for fault in plan.draw("all", number).faults}
missing = (set(plan.LIGHT) | set(plan.HEAVY) - {"slots"}) - names
ok(not missing, "400 rounds have every fault", missing)
victims = {(fault.name, fault.victim) for number in range(400) for fault in plan.draw("all", number).faults if fault.victim}
wanted = {(name, victim) for name in ("cancel", "terminate", "stop", "kill") for victim in plan.VICTIMS}
ok(wanted <= victims, "and every victim", wanted - victims)
whole = state()
ok(copy.deepcopy(whole) == whole and not invariants.violations(whole, []), "the checks change nothing")
print(f"1..{tests}")
sys.exit(failures > 0)
