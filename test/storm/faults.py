"""The faults: what each does to the server, and what it may do to runs (see invariants.py)."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass

import plan
import server

# How long a fault waits for a process of its victim's kind.
VICTIM_SECS = 2.0

# What a victim's cancel or termination may do to runs.
OF_VICTIM = {
    "client": frozenset({"trouble"}), "coordinator": frozenset({"end"}), "sweep": frozenset({"end", "leader"}),
    "load": frozenset({"leader"}), "loader": frozenset({"leader"}), "caller": frozenset({"end", "leader"}),
}


@dataclass
class Event:
    """A fault that was injected, or a statement of the storm that does the same. What it meets: the run or sweep of
    `segments`, the runs that `statement` has called, `run`, those of `sweep`, or all that were under way."""
    name: str
    began: float
    ended: float
    effects: frozenset
    kind: str = ""
    segments: frozenset = frozenset()
    statement: int = None
    run: int = None
    sweep: int = None
    what: str = ""
    detail: str = ""

    def __str__(self):
        moment = time.strftime("%H:%M:%S", time.gmtime(self.began)) + f".{int(self.began % 1 * 1000):03}"
        words = [self.name, self.what, self.kind, self.detail]
        words += [f"{name} {value}" for name, value in
                  (("segment", min(self.segments, default=None)), ("statement", self.statement), ("run", self.run), ("sweep", self.sweep)) if value is not None]
        return f"{moment} {self.ended - self.began:.1f} s: " + " ".join(word for word in words if word)


class Faults:
    """Injects those of a round, each in a thread of its own."""

    def __init__(self, drawn, sessions):
        self.sessions = sessions
        self.events = []
        self.not_done = []  # pairs of fault and reason
        self.stopped = set()
        self.mutex = threading.Lock()
        self.threads = [threading.Thread(target=self.work, args=(fault,), daemon=True) for fault in drawn.faults]

    def start(self):
        for thread in self.threads:
            thread.start()

    def join(self, deadline):
        for thread in self.threads:
            thread.join(max(0.01, deadline - time.time()))
        self.go_on()
        return [thread for thread in self.threads if thread.is_alive()]

    def go_on(self):
        """Nothing stays stopped, however the storm ends."""
        for pid in list(self.stopped):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGCONT)
        self.stopped.clear()

    def work(self, fault):
        time.sleep(max(0, self.sessions.begins + fault.at - time.time()))
        began = time.time()
        event = Event(fault.name, began, began, frozenset(), fault.victim, what=fault.what)
        with self.mutex:
            self.events.append(event)
        try:
            reason = getattr(self, fault.name.replace(" ", "_"))(fault, event)
        except (server.Failed, OSError, subprocess.SubprocessError) as error:
            reason = str(error).splitlines()[0][:100] if str(error) else repr(error)
        event.ended = time.time()
        if reason:
            # What was tried may have done something all the same.
            event.detail = f"not done: {reason}"
            self.not_done.append((fault, reason))

    def victim(self, fault, event):
        """The process that a fault is for, as soon as there is one; what is known of it goes to the event."""
        deadline = time.time() + VICTIM_SECS
        while (pid := self.look_for_victim(fault, event)) is None and time.time() < deadline:
            time.sleep(0.03)
        event.began = time.time()
        return pid

    def look_for_victim(self, fault, event):
        if fault.victim == "caller":
            callers = server.rows(
                "SELECT pid, substr(application_name, 7)::int AS number FROM pg_stat_activity "
                "WHERE application_name ~ '^storm [0-9]+$' AND backend_type = 'client backend' ORDER BY pid", timeout=5)
            if not callers:
                return None
            caller = callers[int(fault.share * len(callers))]
            event.statement = caller["number"]
            return caller["pid"]
        pids = server.workers(fault.victim)
        if not pids:
            return None
        pid = pids[int(fault.share * len(pids))]
        if fault.victim in ("client", "coordinator", "sweep"):
            event.segments = server.segments_of(pid)
        event.detail = f"pid {pid}"
        return pid

    def signal(self, fault, event, send):
        pid = self.victim(fault, event)
        if pid is None:
            return "there was none"
        event.effects = OF_VICTIM[fault.victim]
        try:
            send(pid)
        except ProcessLookupError:
            return "it had gone"
        return None

    def cancel(self, fault, event):
        return self.signal(fault, event, lambda pid: server.sql(f"SELECT pg_cancel_backend({pid})", timeout=5))

    def terminate(self, fault, event):
        return self.signal(fault, event, lambda pid: server.sql(f"SELECT pg_terminate_backend({pid})", timeout=5))

    def interrupt(self, fault, event):
        """By the operating system: nobody asks whether it is a session."""
        number = signal.SIGINT if fault.share < 0.5 else signal.SIGTERM
        return self.signal(fault, event, lambda pid: os.kill(pid, number))

    def stop(self, fault, event):
        pid = self.victim(fault, event)
        if pid is None:
            return "there was none"
        event.effects = frozenset({"stall"})
        # A stopped caller, client or leader holds up the runs that wait for its locks.
        event.segments, event.statement = frozenset(), None
        return self.pause(pid, fault.secs)

    def stop_server_process(self, fault, event):
        pids = [pid for pid, name in server.processes().items() if name.startswith(fault.what)]
        event.effects = frozenset({"stall"})
        return self.pause(pids[0], fault.secs) if pids else "there was none"

    def pause(self, pid, secs):
        self.stopped.add(pid)
        try:
            os.kill(pid, signal.SIGSTOP)
        except ProcessLookupError:
            return "it had gone"
        time.sleep(secs)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
        self.stopped.discard(pid)
        return None

    def close(self, fault, event):
        """The client program of a caller ends without a word."""
        event.statement = self.sessions.close_one(fault.share)
        event.effects = OF_VICTIM["caller"]
        return "there was none" if event.statement is None else None

    def ddl(self, fault, event):
        # A prepared statement does not outlive a change of its result's columns.
        event.effects = frozenset({"trouble"} if "column" in fault.what else ())
        for statement in plan.DDL[fault.what].split("; "):
            # An index is created by a transaction of its own, as a user would.
            server.sql(f"SET lock_timeout = '3s'; {statement}" if "CONCURRENTLY" not in statement and "VACUUM" not in statement
                       else statement, timeout=20)
        return None

    def lock_relation(self, relation, secs):
        server.sql(f"BEGIN; SET LOCAL lock_timeout = '3s'; LOCK TABLE {relation} IN ACCESS EXCLUSIVE MODE; "
                   f"SELECT pg_sleep({secs}); COMMIT", timeout=15)

    def lock(self, fault, event):
        event.effects = frozenset({"stall", "leader"})
        self.lock_relation(f"bench_data.{fault.what}", fault.secs)

    def lock_results(self, fault, event):
        event.effects = frozenset({"stall", "leader", "locked"})
        self.lock_relation(fault.what, fault.secs)

    def reload(self, _, event):
        event.effects = frozenset({"reload"})
        server.sql("SELECT pg_reload_conf()", timeout=5)

    def hangup(self, _, event):
        event.effects = frozenset({"reload"})
        os.kill(server.postmaster(), signal.SIGHUP)

    def reset_statistics(self, *_):
        server.sql("SELECT pg_stat_reset()", timeout=5)

    def drop_role(self, _, event):
        event.effects = frozenset({"trouble", "end"})
        server.sql("DROP ROLE storm_passing", timeout=10)

    def kill(self, fault, event):
        pid = self.victim(fault, event)
        if pid is None:
            return "there was none"
        event.segments, event.statement = frozenset(), None
        event.effects = frozenset({"down"})
        os.kill(pid, signal.SIGKILL)
        return None

    def restart_fast(self, _, event):
        event.effects = frozenset({"end", "leader", "shutdown"})
        return None if server.restart("fast") else "the server was not back within a minute"

    def restart_immediate(self, _, event):
        event.effects = frozenset({"down"})
        return None if server.restart("immediate") else "the server was not back within a minute"

    def disk(self, fault, event):
        """Nothing is left of a small tablespace, on which a table of results is, or a load, or temporary files."""
        if not server.DISK:
            return "needs root and mount"
        event.effects = frozenset({"trouble", "full"} if fault.what in plan.ON_DISK else {"trouble"})
        filler = os.path.join(server.DISK, "filler")
        server.as_owner("dd", "if=/dev/zero", f"of={filler}", "bs=8k", timeout=20)
        time.sleep(fault.secs)
        with contextlib.suppress(FileNotFoundError):
            os.remove(filler)
        return None

    def drop_database(self, *_):
        server.sql("DROP DATABASE storm_passing WITH (FORCE)", timeout=30)

    def drop_extension(self, _, event):
        event.effects = frozenset({"gone"})
        server.sql("DROP EXTENSION pgbench_ext", timeout=30)
