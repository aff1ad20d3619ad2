"""What holds when the server is quiet after a round, however it was disturbed: pure functions of a State and Events.

An event's effects say which deviations it excuses, of the runs that it met:

    end       a run can end early: canceled, incomplete or failed, with an error
    trouble   clients or the recorder can fail: incomplete or failed, with an error
    full      the same, and of what was measured parts can be missing
    locked    the results' tables are locked for seconds: a run whose begin cannot be written has failed, with 55P03; one
              that is ended meanwhile says in its error what it could not write
    stall     processes come late: transactions can be in another interval than theirs ("misplaced")
    reload    configuration files are read: runs of a sweep that sets the server's parameters can be incomplete
    leader    a load or a sweep loses its leader: a staging schema stays until the next load
    shutdown  the server is shut down, and writes down what it can
    down      the server goes down without a word: crashed
    gone      the extension, and with it all that was written

Nothing excuses a run that reads running, samples that do not add up, an audit that accuses of more than "misplaced", or
something left behind.
"""

import re
from dataclasses import dataclass

FINAL = ("completed", "incomplete", "canceled", "failed", "crashed")

# Which effects let a run end so.
EXCUSES = {
    "crashed": {"down"},
    "canceled": {"end", "down"},
    "incomplete": {"end", "trouble", "full", "reload", "down"},
    "failed": {"end", "trouble", "full", "reload", "down"},
}

# What the audit may say of a run that was met by these.
ACCUSATION_EXCUSES = {"misplaced": {"stall", "down"}}

BAD_LOG = re.compile(
    r"PANIC|TRAP|panicked|terminated by signal|leak|unexpected state|non-empty SPI|still referenced|was not closed|"
    r"XX[0-9A-Z]{3} (ERROR|FATAL|WARNING)|stack smashing|double free|could not (attach|unpin|detach)|"
    r"violates unique constraint \"\w*_log_p?key\w*\"|server process .* was terminated")
# What an error says of parts of a run's end that were given up.
NOT_WRITTEN = re.compile(r"^Not written: .*bench\.(samples|latencies|scripts)", re.MULTILINE)

# Told by the postmaster of what the storm itself has killed.
KILLED = re.compile(r"was terminated by signal 9: Killed")

# What sessions of ours ask for while others change the same tables: the server's own words, no fault of the extension.
UNLUCKY = re.compile(r"cache lookup failed|could not open relation with OID|tuple concurrently (updated|deleted)|could not find tuple for")


@dataclass(frozen=True)
class Violation:
    invariant: str
    text: str

    def __str__(self):
        return f"{self.invariant}: {self.text}"


def meets(event, run, state):
    """Whether a fault can have met a run, or a sweep."""
    if event.run is not None:
        return event.run == run["run_id"]
    if event.sweep is not None:
        return event.sweep == run["sweep_id"]
    if event.statement is not None:
        # Of a caller that waited for a run by another's call, or only looked, nothing follows.
        return event.statement == run["statement"]
    if event.segments and not event.segments & {run["segment"], run.get("sweep_segment")}:
        return False
    began = run["started"] or state.began
    # Its close follows its end, and its start comes before `started`.
    ended = run["finished"] or state.ended
    return event.began < ended + 1 and event.ended > began - 6


def effects_on(run, events, state):
    return set().union(*(event.effects for event in events if meets(event, run, state)))


def happened(events, *effects):
    return any(event.effects & set(effects) for event in events)


def check_statuses(state, events):
    for run in state.runs:
        name = f"run {run['run_id']} of {run['workload']} ({run['role']}, statement {run['statement']})"
        status, error = run["status"], run["error"]
        if run["imported"]:
            continue
        if status not in FINAL:
            yield Violation("true final status", f"{name} reads {status} although all is over")
            continue
        excuses, effects = EXCUSES.get(status), effects_on(run, events, state)
        if status == "failed" and error and error["sqlstate"] == "55P03" and "locked" in effects:
            continue
        if excuses and not excuses & effects:
            yield Violation("true final status", f"{name} reads {status}, and nothing has met it that explains this: error {error}")
        if status == "completed" and error:
            yield Violation("true final status", f"{name} reads completed, with an error: {error}")
        if status in ("incomplete", "canceled", "failed") and not error:
            yield Violation("true final status", f"{name} reads {status}, without an error")
        if status == "completed":
            yield from check_completed(run, name, events)
    for run_id, status in state.earlier.items():
        now = state.now.get(run_id)
        if status in FINAL and now is not None and now != status:
            yield Violation("true final status", f"run {run_id} read {status} before this round, and now {now}")
    for run_id, number in state.called.items():
        if run_id not in state.now and not happened(events, "gone"):
            yield Violation("true final status", f"run {run_id}, which statement {number} has begun, is not there")


def check_completed(run, name, events):
    """Of what ends clients or the server nothing has happened to a run that reads completed."""
    for event in events:
        if event.detail.startswith("not done") or run["secs"] is None or run["started"] is None:
            continue
        measured_until = run["started"] + run["warmup"] + run["secs"]
        if not (run["started"] + 0.1 < event.began and event.ended < measured_until - 0.3):
            continue
        if event.effects & {"down", "shutdown"}:
            yield Violation("true final status", f"{name} reads completed, although the server went down meanwhile: {event}")
        if event.name == "terminate" and event.kind in ("client", "coordinator") and run["segment"] in event.segments:
            yield Violation("true final status", f"{name} reads completed, although: {event}")


def check_sweeps(state, events):
    for sweep in state.sweeps:
        name = f"sweep {sweep['sweep_id']} ({sweep['role']}, statement {sweep['statement']})"
        as_run = dict(sweep, run_id=None)
        if sweep["status"] not in FINAL:
            yield Violation("true final status", f"{name} reads {sweep['status']} although all is over")
        elif sweep["status"] == "crashed" and "down" not in effects_on(as_run, events, state):
            yield Violation("true final status", f"{name} reads crashed, and the server did not go down")
        elif sweep["status"] == "completed" and sweep["completed"] != sweep["runs"]:
            yield Violation("true final status", f"{name} reads completed with {sweep['completed']} of {sweep['runs']} runs")
        if sweep["to_be_put_back"]:
            yield Violation("server parameters", f"{name} has parameters of the server to put back")


def check_sums(state, events):
    for run in state.runs:
        name = f"run {run['run_id']} of {run['workload']} ({run['status']})"
        effects = effects_on(run, events, state)
        # A crash comes between the samples and the rest; of imported ones the document has been the same.
        is_whole = run["status"] in ("completed", "incomplete", "canceled") and "full" not in effects and (
            "down" not in effects or run["status"] == "completed") and not (
            "locked" in effects and NOT_WRITTEN.search((run["error"] or {}).get("detail") or ""))
        sampled = run["sampled"] or 0
        if is_whole and not run["imported"]:
            # What was drained is among the latencies, unless the run was stopped before its measurement.
            for where, more in (("in_histogram", run["drained"]), ("in_scripts", 0)):
                if not sampled <= (run[where] or 0) <= sampled + more:
                    yield Violation("sums", f"{name}: {sampled} transactions in samples, {run[where]} {where.replace('_', ' ')}"
                                            f"; its error: {run['error']}")
        if run["gaps"]:
            yield Violation("sums", f"{name}: {run['gaps']} of {run['samples']} samples do not begin where the one before ended")
        if run["status"] != "completed":
            continue
        if run["secs"] is not None and abs((run["sampled_secs"] or 0) - run["secs"]) > 1e-3:
            yield Violation("sums", f"{name}: its samples are of {run['sampled_secs']} s, not of {run['secs']}")
        made = sampled + (run["failed"] or 0) + (run["skipped"] or 0)
        if run["transactions"] is not None and not run["warmup"] and made != run["transactions"] * run["clients"]:
            yield Violation("sums", f"{name}: {made} transactions, not {run['transactions']} of each of {run['clients']} clients")
    balances = {balance or 0 for balance in state.balances.values()}
    if len(balances) > 1:
        yield Violation("sums", f"TPC-B's balances differ: {state.balances}")
    for broken in state.conditions:
        yield Violation("sums", f"fixture {broken['name']}: {broken['condition']}: {broken['detail']}")
    for fixture in state.fixtures:
        if fixture["rows"] != fixture["counted"]:
            yield Violation("sums", f"fixture {fixture['schema']}.{fixture['name']} was loaded with {fixture['rows']} rows and has {fixture['counted']}")


def check_audits(state, events):
    runs = {run["run_id"]: run for run in state.runs}
    for line in state.accusations:
        run = runs.get(line["run_id"])
        if run is None or run["imported"]:
            continue
        if ACCUSATION_EXCUSES.get(line["counter"], set()) & effects_on(run, events, state):
            continue
        yield Violation("audits", f"run {line['run_id']} of {run['workload']} ({run['status']}): {line['counter']}: "
                                  f"harness {line['harness']}, server {line['server']} ({line['reason']})")


def check_nothing_left(state, events):
    left = {
        "workers": state.workers, "segments": state.segments, "temporary files": state.temporary_files,
        "staging schemas after the next load": state.staging_after_load,
    }
    for what, there in left.items():
        if there:
            yield Violation("nothing left", f"{what}: {there}")
    if state.staging and not happened(events, "leader", "end", "down", "shutdown"):
        yield Violation("nothing left", f"staging schemas, and no leader was lost: {state.staging}")
    for lock in state.locks:
        yield Violation("nothing left", f"a lock: {lock}")
    before, after = state.expected, (state.auto_conf, state.settings)
    if before[0] != after[0]:
        yield Violation("server parameters", f"postgresql.auto.conf was {before[0]!r} and is {after[0]!r}")
    for name in sorted(before[1].keys() | after[1].keys()):
        if before[1].get(name) != after[1].get(name):
            yield Violation("server parameters", f"{name} was {before[1].get(name)!r} and is {after[1].get(name)!r}")


def check_log(state, events):
    kills = happened(events, "down")
    for line in state.log.splitlines():
        if BAD_LOG.search(line) and not (kills and KILLED.search(line)) and not UNLUCKY.search(line):
            yield Violation("log", line)


def check_server(state, events):
    if not state.answers:
        yield Violation("server", "it did not answer any more")
    before, after = state.identity_before, state.identity
    if state.answers and before != after and not happened(events, "down", "shutdown"):
        yield Violation("server", f"postmaster and checkpointer were {before} and are {after}, and nobody has ended them")
    if state.unquiet:
        yield Violation("quiet", f"not over in time: {state.unquiet}")
    for text in state.hung:
        yield Violation("quiet", f"a call did not return: {text}")


CHECKS = (check_server, check_statuses, check_sweeps, check_sums, check_audits, check_nothing_left, check_log)


def violations(state, events):
    """All that does not hold."""
    return [violation for check in CHECKS for violation in check(state, events)]
