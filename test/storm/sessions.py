"""Sessions that call the extension: a psql for each statement, several sessions at once."""

import re
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field

import server

# Errors as psql writes them with VERBOSITY=verbose.
ERROR = re.compile(r"(?:ERROR|FATAL|PANIC):  ([0-9A-Z]{5}): (.*)")


@dataclass
class Outcome:
    """How a statement ended. `errors` are pairs of SQLSTATE and message."""
    statement: object
    began: float
    ended: float = 0.0
    output: str = ""
    hung: bool = False
    closed: bool = False
    errors: list = field(default_factory=list)

    def word(self):
        """For the table: done, the first error's SQLSTATE, or what became of the connection."""
        if self.hung:
            return "hung"
        if self.closed:
            return "closed"
        if self.errors:
            return self.errors[0][0]
        return "lost" if "connection" in self.output and "server" in self.output else "done"


class Sessions:
    """Those of a round."""

    def __init__(self, plan, begins):
        self.begins = begins
        self.outcomes = []
        self.lock = threading.Lock()
        self.running = {}  # psql processes by number of statement
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(session,), daemon=True) for session in plan.sessions]

    def start(self):
        for thread in self.threads:
            thread.start()

    def work(self, session):
        for statement in session:
            if self.stopping.wait(max(0, self.begins + statement.at - time.time())):
                return
            self.call(statement)

    def call(self, statement):
        outcome = Outcome(statement, time.time())
        process = subprocess.Popen(
            ["psql", "-XAtq", "-v", "VERBOSITY=verbose", "-f", "-"], text=True, errors="replace",
            env=server.environment(statement.role, statement.database, f"storm {statement.number}"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        with self.lock:
            self.running[statement.number] = process
            self.outcomes.append(outcome)
        outcome.output = process.communicate(statement.sql + ";\n")[0]
        with self.lock:
            del self.running[statement.number]
        outcome.ended = time.time()
        outcome.closed = process.returncode == -signal.SIGKILL and not outcome.hung
        outcome.errors = ERROR.findall(outcome.output)

    def close_one(self, share):
        """Kills the psql at that share of those that run; its statement's number, or None."""
        with self.lock:
            if not self.running:
                return None
            number = sorted(self.running)[int(share * len(self.running))]
            self.running[number].kill()
            return number

    def is_over(self):
        return not any(thread.is_alive() for thread in self.threads)

    def join(self, deadline):
        """Waits until all have ended; those that have not by then are killed, and have hung."""
        for thread in self.threads:
            thread.join(max(0.01, deadline - time.time()))
        hung = []
        with self.lock:
            self.stopping.set()
            for outcome in self.outcomes:
                process = self.running.get(outcome.statement.number)
                if process:
                    outcome.hung = True
                    hung.append(outcome)
                    process.kill()
        for thread in self.threads:
            thread.join(5)
        return hung
