"""A storm: rounds of calls from several sessions with faults among them, and after each round all invariants.

    storm.py SECS [SEED [ROUND]]    SECS of rounds; SEED repeats a schedule; ROUND: only that one
    storm.py --plan SEED ROUND      what that round does

Called by storm.sh, which starts the cluster. Prints TAP: a test for each round.
"""

import collections
import os
import re
import signal
import sys
import time

import furnish
import invariants
import plan
import server
from faults import Event, Faults
from sessions import Sessions
from state import State, last_run, read, settings, statuses

# Seconds after a round's statements have begun in which all must be over.
PATIENCE = 45


class Stopped(Exception):
    """By a signal."""


def diag(text):
    for line in str(text).splitlines():
        print(f"# {line}", flush=True)


class Storm:
    def __init__(self, seed):
        self.seed = seed
        self.injected, self.not_done = collections.Counter(), collections.Counter()
        self.reasons = collections.defaultdict(collections.Counter)
        self.calls = collections.defaultdict(collections.Counter)
        self.errors = collections.defaultdict(collections.Counter)
        self.statuses = collections.Counter()
        self.broken = []
        self.tests = 0
        self.expected = None

    def prepare(self):
        furnish.everything()
        self.expected = (server.auto_conf(), settings())

    def round(self, number):
        """One round; whether the storm can go on."""
        drawn = plan.draw(self.seed, number)
        furnish.before(drawn)
        server.wait_until_up()
        state = State(began=time.time(), earlier=statuses(), identity_before=server.identity(), expected=self.expected)
        after, log_offset = last_run(), server.log_size()
        sessions = Sessions(drawn, time.time() + 0.2)
        faults = Faults(drawn, sessions)
        try:
            sessions.start()
            faults.start()
            self.wait(sessions, faults, state)
        finally:
            faults.go_on()
        state.ended = time.time()
        events = faults.events + self.own_events(drawn, sessions, state)
        self.look(drawn, state, after)
        state.log = server.log_since(log_offset)
        found = invariants.violations(state, events)
        self.count(drawn, sessions, faults, state)
        self.tell(drawn, sessions, events, state, found)
        furnish.after(drawn)
        return server.wait_until_up()

    def wait(self, sessions, faults, state):
        """For all to be over, with patience; what is not is shown and then ended."""
        deadline = time.time() + plan.ACTIVE + PATIENCE
        stuck = faults.join(deadline)
        if not server.wait_until_up():
            if server.postmaster() is None:
                server.start()
            state.answers = False
        while time.time() < deadline and not (sessions.is_over() and not server.workers()):
            time.sleep(0.1)
        if not sessions.is_over() or server.workers() or stuck:
            shown = server.try_sql(
                "SELECT format('%s %s [%s] %s %s: %s', pid, backend_type, application_name, wait_event_type, wait_event, left(query, 100)) "
                "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type ~ 'client|pgbench'")
            state.unquiet = ", ".join(f"{pid} {name}" for pid, name in server.processes().items() if "pgbench_ext" in name)
            state.hung = [f"{outcome.statement.sql}\n{shown}" for outcome in sessions.join(time.time())]
            if stuck and not state.unquiet:
                state.unquiet = f"faults: {shown}"
            # The next round is not to suffer from it.
            server.restart("immediate")
            server.wait_until_up()
        sessions.join(time.time() + 5)
        # Sessions of the callers that were closed end as soon as they notice.
        while time.time() < deadline and server.try_sql(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name ~ '^storm [0-9]'") not in ("0", None):
            time.sleep(0.1)

    def own_events(self, drawn, sessions, state):
        """What the storm's statements do themselves, as faults would."""
        events = []
        if drawn.heavy == "slots":
            events.append(Event("slots", state.began, state.ended, frozenset({"trouble"})))
        for outcome in sessions.outcomes:
            statement = outcome.statement
            times = (outcome.began, outcome.ended or state.ended)
            if statement.effects:
                events.append(Event(statement.kind, *times, statement.effects, statement=statement.number))
            # What was asked for counts, however the answer was lost.
            for word, ended in re.findall(r"^(stopped|sweep) (\d+)\|t$", outcome.output, re.M):
                events.append(Event("bench.stop", *times, frozenset({"end"}), **{"run" if word == "stopped" else "sweep": int(ended)}))
            if statement.kind.startswith("stop") and not re.search(r"\|[tf]$", outcome.output, re.M) and outcome.word() != "done":
                events.append(Event("bench.stop without an answer", *times, frozenset({"end"})))
            # What is under way for a call is stopped where the caller itself is in its way.
            if outcome.word() == "40P01":
                events.append(Event("a deadlock with its caller", *times, frozenset({"end"}), statement=statement.number))
            if statement.database == "postgres" and statement.kind in ("run", "start", "start and wait"):
                state.called.update((int(run), statement.number) for run in re.findall(r"^(\d+)(?:\|\w*)?$", outcome.output, re.M))
            if statement.kind == "prune":
                state.called.clear()
        return events

    def look(self, drawn, state, after):
        if drawn.heavy == "drop extension":
            # Nothing is written any more; what must not be left can be seen from outside.
            state.auto_conf, state.settings = self.expected[0], self.expected[1]
            for _ in range(150):
                state.auto_conf, state.settings = server.auto_conf(), settings()
                if (state.auto_conf, state.settings) == self.expected:
                    break
                time.sleep(0.1)
            state.earlier = {}
            state.workers = {pid: name for pid, name in server.processes().items() if name.startswith("pgbench_ext")}
            state.segments, state.identity = server.segments(), server.identity()
            state.temporary_files = server.temporary_files()
            return
        if drawn.heavy == "slots":
            # The parameter is the storm's own.
            state.expected = (self.expected[0], dict(self.expected[1], max_worker_processes="8"))
        try:
            read(state, after, has_balances=True)
        except server.Failed as failed:
            state.answers = False
            state.unquiet += f" {failed}"

    def count(self, drawn, sessions, faults, state):
        failed = {id(fault): reason for fault, reason in faults.not_done}
        for fault in drawn.faults:
            (self.not_done if id(fault) in failed else self.injected)[fault.counted_as()] += 1
            if id(fault) in failed:
                self.reasons[fault.counted_as()][failed[id(fault)]] += 1
        if drawn.heavy == "slots":
            self.injected["slots"] += 1
        for outcome in sessions.outcomes:
            self.calls[outcome.statement.kind][outcome.word()] += 1
            for code, message in outcome.errors[:1]:
                self.errors[code][message[:110]] += 1
        self.statuses.update(run["status"] for run in state.runs if not run["imported"])
        self.statuses.update("imported" for run in state.runs if run["imported"])

    def tell(self, drawn, sessions, events, state, found):
        self.tests += 1
        injected = ", ".join(str(fault) for fault in drawn.faults) + (", few worker slots" if drawn.heavy == "slots" else "")
        line = f"{self.tests} - round {drawn.number}, {len(state.runs)} runs: {injected}"
        print(("not ok " if found else "ok ") + line.replace("#", ""), flush=True)
        if not found:
            return
        self.broken.extend((drawn.number, violation) for violation in found)
        diag(f"storm.sh with SEED={self.seed} ROUND={drawn.number} repeats this round's schedule")
        for violation in found:
            diag(f"VIOLATED {violation}")
        for event in sorted(events, key=lambda event: event.began):
            diag(f"  event {event}")
        for run in state.runs:
            diag(f"  run {run['run_id']} {run['workload']} ({run['role']}, statement {run['statement']}, segment {run['segment']}): {run['status']} "
                 f"{stamp(run['started'])} to {stamp(run['finished'])} {run['error'] or ''}")
        for outcome in sessions.outcomes:
            last = outcome.output.strip().splitlines()[-1:] or [""]
            diag(f"  call {stamp(outcome.began)} to {stamp(outcome.ended)} {outcome.statement.number} {outcome.statement.role}: "
                 f"{outcome.statement.sql} -> {outcome.word()} {last[0][:200]}")
        worth = [line for line in state.log.splitlines() if re.search("ERROR|FATAL|WARNING|PANIC|DETAIL|CONTEXT|terminated|exited", line)]
        for line in worth[-60:]:
            diag(f"  log {line[:300]}")

    def close(self):
        """The tables of the end."""
        self.tests += 1
        print(f"{'not ' if not self.injected else ''}ok {self.tests} - {sum(self.injected.values())} faults were injected")
        print(f"1..{self.tests}")
        diag("faults: injected, and what could not be done")
        for name in sorted(self.injected.keys() | self.not_done.keys()):
            reasons = "; ".join(f"{count} {reason}" for reason, count in self.reasons[name].most_common(3))
            diag(f"{self.injected[name]:6} {self.not_done[name]:6}  {name}{'  (' + reasons + ')' if reasons else ''}")
        diag(f"{sum(self.injected.values()):6} {sum(self.not_done.values()):6}  in all")
        diag("calls, by how they ended")
        for kind, words in sorted(self.calls.items()):
            diag(f"{sum(words.values()):6}  {kind}: " + ", ".join(f"{count} {word}" for word, count in words.most_common()))
        diag("errors of calls, by SQLSTATE")
        for code, messages in sorted(self.errors.items()):
            diag(f"{sum(messages.values()):6}  {code}: " + "; ".join(f"{count} {message}" for message, count in messages.most_common(3)))
        diag("runs, by status")
        diag("        " + ", ".join(f"{count} {status}" for status, count in self.statuses.most_common()))
        diag(f"violated invariants: {len(self.broken)}")
        for number, violation in self.broken:
            diag(f"        round {number}: {str(violation)[:240]}")


def stamp(moment):
    if not moment:
        return "-"
    return time.strftime("%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1000):03}"


def on_signal(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise Stopped


def main(arguments):
    if arguments[:1] == ["--plan"]:
        drawn = plan.draw(arguments[1], int(arguments[2]))
        for session in drawn.sessions:
            print("session", *(f"\n  {s.at:.1f} {s.role} {s.kind}: {s.sql}" for s in session))
        print("faults", *(f"\n  {fault}" for fault in drawn.faults), "\n ", drawn.heavy)
        return 0
    secs = float(arguments[0])
    seed = arguments[1] if len(arguments) > 1 and arguments[1] else str(int.from_bytes(os.urandom(4), "big"))
    only = int(arguments[2]) if len(arguments) > 2 and arguments[2] else None
    diag(f"SEED={seed}")
    storm, ends, number = Storm(seed), time.time() + secs, only or 1
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, on_signal)
    try:
        storm.prepare()
        ends = time.time() + secs
        while time.time() < ends:
            if not storm.round(number):
                diag("the server did not come back: the storm ends here")
                storm.broken.append((number, invariants.Violation("server", "it did not come back")))
                break
            number += only is None
    except Stopped:
        diag("stopped by a signal")
    storm.close()
    return 1 if storm.broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
