"""What a storm does, drawn from its seed: all of it before it begins, so that the seed repeats it."""

import random
from dataclasses import dataclass, field

# Seconds in which a round's statements and faults begin.
ACTIVE = 6.0

ROLES = ("postgres", "storm_a", "storm_b")
FIXTURES = {"pk": (200, 3000), "name": (200, 3000), "log": (0, 500), "wide": (0, 200)}
# With the weights of being chosen. tpcb_simple_update is not among them: it leaves the sums unequal.
WORKLOADS = {
    "pk_select": 3, "pk_update": 4, "pk_update_hot": 2, "name_select": 1, "name_update": 2, "pk_insert": 2,
    "insert_single": 1, "insert_batch": 1, "tpcb": 4, "tpcb_select": 1, "tpcb@9,tpcb_select@1": 2,
    "orders": 3, "orders_functions": 2, "orders_deck": 1,
    "pk_select@9,pk_update@1": 2, "storm_sleep": 1, "storm_deadlock": 2, "storm_error": 1, "storm_rollback": 1,
}
# Workloads whose clients can end by themselves.
ERRING = ("storm_error", "storm_deadlock", "storm_spill")

SCRIPTS = {
    "storm_sleep": ("pk", r"""\set id random(1, :rows)
\sleep 20 ms
SELECT * FROM pk WHERE id = :id;"""),
    "storm_error": ("pk", r"""\set id random(0, 400)
SELECT 1 / :id;"""),
    "storm_deadlock": ("pk", r"""\set a random(1, 5)
\set b random(1, 5)
BEGIN;
UPDATE pk SET crt_time = now() WHERE id = :a;
UPDATE pk SET crt_time = now() WHERE id = :b;
END;"""),
    "storm_rollback": ("pk", r"""\set id random(1, :rows)
BEGIN;
UPDATE pk SET crt_time = now() WHERE id = :id;
ROLLBACK;"""),
    "storm_spill": (None, "SELECT count(*) FROM (SELECT md5(g::text) FROM generate_series(1, 60000) AS g ORDER BY 1 OFFSET 1) AS s;"),
}

VICTIMS = ("client", "coordinator", "load", "loader", "sweep", "caller")
ON_DISK = ("bench.samples", "bench.latencies", "bench_internal.run_log", "bench_internal.relation_log")
RESULTS = ("bench_internal.run_log", "bench.samples", "bench.latencies", "bench_internal.relation_log", "bench_internal.audit_log",
           "bench_internal.load_log", "bench_internal.sweep_log", "bench_internal.sweep_run_log", "bench.fixtures")
TABLES = ("pk", "name", "log", "wide", "pgbench_accounts", "pgbench_history", "district", "order_line")
DDL = {
    "recreate index": "DROP INDEX IF EXISTS bench_data.storm_index; CREATE INDEX storm_index ON bench_data.pk (id, crt_time)",
    "index": "CREATE INDEX IF NOT EXISTS storm_index ON bench_data.pk (id, crt_time)",
    "drop index": "DROP INDEX IF EXISTS bench_data.storm_index",
    "reindex concurrently": "REINDEX TABLE CONCURRENTLY bench_data.pk",
    "column type": "ALTER TABLE bench_data.pk ALTER info TYPE varchar",
    "column type back": "ALTER TABLE bench_data.pk ALTER info TYPE text",
    "column type rewrites": "ALTER TABLE bench_data.pk ALTER id TYPE int USING id::int",
    "truncate": "TRUNCATE bench_data.log",
    "truncate wide": "TRUNCATE bench_data.wide",
    "vacuum full": "VACUUM FULL bench_data.pk",
    "vacuum full of results": "VACUUM FULL bench.samples",
    "analyze": "ANALYZE bench_data.pk",
    "vacuum of orders": "VACUUM bench_data.stock, bench_data.new_order",
    "add column": "ALTER TABLE bench_data.wide ADD COLUMN IF NOT EXISTS storm int",
    "drop column": "ALTER TABLE bench_data.wide DROP COLUMN IF EXISTS storm",
}

# Faults that the round as a whole bears, of which it has one at most: weights.
HEAVY = {"kill": 8, "restart fast": 4, "restart immediate": 3, "disk": 4, "slots": 2, "drop database": 2, "drop extension": 1}
LIGHT = {"cancel": 5, "terminate": 7, "interrupt": 2, "stop": 7, "close": 3, "ddl": 7, "lock": 4, "lock results": 4,
         "reload": 2, "hangup": 1, "drop role": 1, "reset statistics": 1, "stop server process": 1}


@dataclass
class Statement:
    """A call that a session makes. `number` is in its tags and its session's name."""
    number: int
    at: float
    role: str
    kind: str
    sql: str
    database: str = "postgres"
    # What it may do to its own runs, see invariants.py.
    effects: frozenset = frozenset()


@dataclass
class Fault:
    """`victim` and `share` choose the process: of those there are, the one at that share of them."""
    at: float
    name: str
    victim: str = ""
    share: float = 0.0
    secs: float = 0.0
    what: str = ""

    def __str__(self):
        words = [self.name, self.what, self.victim, f"{self.secs:.1f} s" if self.secs else ""]
        return " ".join(word for word in words if word) + f" at {self.at:.1f}"

    def counted_as(self):
        return " ".join(word for word in (self.name, self.victim or self.what) if word)


@dataclass
class Round:
    number: int
    sessions: list = field(default_factory=list)  # of lists of statements
    faults: list = field(default_factory=list)
    heavy: str = ""


class Dice:
    """Draws of one round."""

    def __init__(self, seed, number):
        self.random = random.Random(f"{seed}/{number}")
        self.statements = number * 1000

    def of(self, weights):
        return self.random.choices(list(weights), list(weights.values()))[0]

    def chance(self, share):
        return self.random.random() < share

    def number(self):
        self.statements += 1
        return self.statements

    def options(self, serial, workload):
        """Arguments of a run or a start, without its workload."""
        r = self.random
        given = [f"clients => {r.choice((1, 1, 2, 3, 4, 6))}"]
        if self.chance(0.2):
            # Each deadlock takes deadlock_timeout, and transactions of one warehouse wait for each other.
            is_slow = workload in ("storm_deadlock", "storm_sleep") or workload.startswith("orders")
            transactions = r.choice((1, 20) if is_slow else (1, 20, 500, 3000))
            given.append(f"transactions => {transactions}")
        else:
            transactions = 0
            given.append(f"secs => {r.choice((0.2, 0.6, 1.5, 2.5, 3.5))}")
        if self.chance(0.15):
            given.append(f"warmup => {r.choice((0.2, 0.5))}")
        # A few seconds at the most.
        if self.chance(0.25) and transactions <= 20:
            given.append(f"rate => {r.choice((50, 1000, 8000))}")
            if self.chance(0.4):
                given.append(f"latency_limit => {r.choice((1, 50))}")
        if self.chance(0.5):
            given.append(f"sample_interval => {r.choice((0.1, 0.25, 0.5))}")
        if self.chance(0.4):
            given.append(f"max_tries => {r.choice((3, 10) if transactions else (0, 3, 10))}")
        if self.chance(0.3):
            given.append(f"query_mode => '{r.choice(('simple', 'extended'))}'")
        if self.chance(0.2):
            given.append("results => 'discard'")
        given.append(f"tags => '{{\"storm\": {serial}}}'")
        return ", ".join(given)

    def run(self, at, role):
        number, workload = self.number(), self.of(WORKLOADS)
        effects = {"trouble"} if workload in ERRING else set()
        call = f"bench.run('{workload}', {self.options(number, workload)})"
        how = self.random.random()
        if how < 0.4:
            kind, text = "run", f"SELECT {call}"
        elif how < 0.5:
            kind, text = "run with timeout", f"SET statement_timeout = {self.random.choice((5, 80, 700))}; SELECT {call}"
            effects.add("end")
        elif how < 0.6:
            kind, text = "run in a block", f"BEGIN; SELECT {call}; ROLLBACK"
        elif how < 0.8:
            call = call.replace("bench.run", "bench.start")
            kind, text = "start and wait", f"SELECT {call} AS run_id \\gset\nSELECT :run_id, bench.wait(:run_id, 20)"
        else:
            kind, text = "start", "SELECT " + call.replace("bench.run", "bench.start")
        return Statement(number, at, role, kind, text, effects=frozenset(effects))

    def load(self, at, role):
        fixture = self.random.choice(list(FIXTURES))
        rows = self.random.randint(*FIXTURES[fixture])
        if self.chance(0.5):
            rows *= 200
        options = {"storm_a": '{"schema": "storm_a_data"}', "storm_b": '{"schema": "storm_b_data"}'}.get(role, "{}")
        jobs = self.random.choice(("NULL", "1", "2"))
        timeout = "SET statement_timeout = 150; " if self.chance(0.15) else ""
        return Statement(self.number(), at, role, "load", f"{timeout}SELECT bench.load('{fixture}', {rows}, {jobs}, '{options}')")

    def sweep(self, at, role):
        number, workload = self.number(), self.random.choice(("pk_update", "pk_select", "tpcb"))
        effects, variants, before = set(), "{}", self.random.choice(("none", "vacuum", "checkpoint", "reload"))
        if role == "postgres" and self.chance(0.6):
            # What puts parameters of the server into effect reloads its configuration.
            variants = '{"x": {"system": {"commit_delay": 10, "checkpoint_timeout": "11min"}}, "y": {}}'
        elif role != "postgres":
            before = "none"
        call = (f"bench.sweep('{workload}', '{{1,2}}', secs => {self.random.choice((0.2, 0.5))}, variants => '{variants}', "
                f"before => '{before}', tags => '{{\"storm\": {number}}}')")
        if self.chance(0.5):
            call, kind = call.replace("bench.sweep", "bench.start_sweep"), "start_sweep"
        else:
            kind = "sweep"
        timeout = ""
        if self.chance(0.25):
            timeout = f"SET statement_timeout = {self.random.choice((5, 90, 800))}; "
            effects.add("end")
        return Statement(number, at, role, kind, f"{timeout}SELECT {call}", effects=frozenset(effects))

    def small(self, at, role):
        """Calls that only look, or carry runs, or end them."""
        last = "(SELECT max(run_id) FROM bench.runs WHERE status NOT IN ('starting', 'running'))"
        going = "SELECT run_id FROM bench.runs WHERE status IN ('starting', 'running') ORDER BY run_id DESC LIMIT 1"
        kind, text = self.of({
            ("report", f"SELECT length(bench.report({last}, '{self.random.choice(('text', 'html', 'json'))}'))"): 2,
            ("report while running", f"SELECT length(bench.report(run_id)) FROM ({going}) AS r"): 2,
            ("findings while running", f"SELECT count(*) FROM ({going}) AS r, bench.findings(run_id)"): 2,
            ("audit", f"SELECT count(*) FROM bench.audit({last})"): 1,
            ("progress", "SELECT count(*) FROM bench.progress"): 2,
            ("wait", f"SELECT bench.wait(run_id, 2) FROM ({going}) AS r"): 2,
            ("stop", f"SELECT 'stopped ' || run_id, bench.stop(run_id) FROM ({going}) AS r"): 3,
            ("stop_sweep", "SELECT 'sweep ' || sweep_id, bench.stop_sweep(sweep_id) FROM bench.sweeps WHERE status = 'running' LIMIT 1"): 2,
            ("resume_sweep", "SELECT bench.resume_sweep(max(sweep_id)) FROM bench.sweeps WHERE status NOT IN ('running', 'completed') AND role = current_user"): 2,
            ("export", f"SELECT length(bench.export(ARRAY[{last}])::text)"): 2,
            ("import", f"SELECT bench.import(bench.export(ARRAY[{last}]))"): 3,
            ("prune", "SELECT bench.prune('20 seconds')"): 1,
            ("compare", f"SELECT count(*) FROM bench.compare(ARRAY[{last}], ARRAY[{last}])"): 1,
        })
        return Statement(self.number(), at, role, kind, text)


def draw(seed, number):
    """The round of that number."""
    dice = Dice(seed, number)
    r = dice.random
    plan = Round(number, heavy=dice.of(HEAVY) if dice.chance(0.45) else "")
    makers = {dice.run: 10, dice.load: 4, dice.sweep: 4, dice.small: 6}
    for _ in range(r.randint(3, 5)):
        role, at, session = dice.of({"postgres": 3, "storm_a": 2, "storm_b": 1}), r.uniform(0, 1), []
        while at < ACTIVE - 1:
            session.append(dice.of(makers)(at, role))
            at += r.uniform(0.2, 2.5)
        plan.sessions.append(session)
    for _ in range(r.randint(3, 6)):
        plan.faults.append(light(dice))
    if any(fault.name == "drop role" for fault in plan.faults):
        number = dice.number()
        text = f"SELECT bench.run('pk_select', 2, secs => 3, tags => '{{\"storm\": {number}}}')"
        plan.sessions.append([Statement(number, 0.2, "storm_passing", "run", text, effects=frozenset({"end", "trouble"}))])
    if plan.heavy:
        heavy(dice, plan)
    for fault in plan.faults:
        attract(dice, plan, fault)
    plan.faults.sort(key=lambda fault: fault.at)
    return plan


def light(dice):
    r, name = dice.random, dice.of(LIGHT)
    fault = Fault(round(r.uniform(0.5, ACTIVE), 2), name, share=r.random())
    if name in ("cancel", "terminate", "interrupt", "stop"):
        fault.victim = r.choices(VICTIMS, (5, 4, 2, 1, 3, 3))[0]
    if name in ("stop", "lock", "lock results", "stop server process"):
        fault.secs = round(r.uniform(0.2, 4 if name == "stop" else 3), 1)
    if name == "stop server process":
        fault.what = r.choice(("checkpointer", "walwriter", "autovacuum launcher"))
    if name == "ddl":
        fault.what = r.choice(list(DDL))
    if name == "lock":
        fault.what = r.choice(TABLES)
    if name == "lock results":
        fault.what = r.choice(RESULTS)
    return fault


def attract(dice, plan, fault):
    """Adds what a fault's victim works for, where that is seldom under way by itself."""
    number = dice.number()
    if fault.victim in ("load", "loader"):
        text = "SELECT bench.load('events', 600000, 2, '{\"schema\": \"storm_load\"}')"
        plan.sessions.append([Statement(number, max(0.0, fault.at - 0.3), "postgres", "load", text)])
    elif fault.victim == "sweep":
        call = dice.random.choice(("bench.sweep", "bench.start_sweep"))
        text = f"SELECT {call}('pk_update', '{{1,2}}', secs => 0.4, rounds => 2, tags => '{{\"storm\": {number}}}')"
        plan.sessions.append([Statement(number, max(0.0, fault.at - 1), "storm_a", call.removeprefix("bench."), text)])


def heavy(dice, plan):
    """Adds the round's heavy fault, with the statements that it is to meet."""
    r, at = dice.random, round(dice.random.uniform(1, ACTIVE - 1), 2)
    if plan.heavy == "kill":
        plan.faults.append(Fault(at, "kill", r.choices(VICTIMS, (5, 4, 2, 1, 3, 2))[0], r.random()))
    elif plan.heavy == "disk":
        what = r.choice((*ON_DISK, "load", "temporary files"))
        plan.faults.append(Fault(at, "disk", secs=round(r.uniform(1, 4), 1), what=what))
        number = dice.number()
        if what == "load":
            text = "SELECT bench.load('pk', 400000, options => '{\"schema\": \"storm_disk\", \"tablespace\": \"storm_small\"}')"
            statement = Statement(number, at, "postgres", "load on a full disk", text)
        elif what == "temporary files":
            text = (f"SELECT bench.run('storm_spill', 2, secs => 2, settings => '{{\"temp_tablespaces\": \"storm_small\", "
                    f"\"work_mem\": \"64kB\"}}', tags => '{{\"storm\": {number}}}')")
            statement = Statement(number, at, "postgres", "run on a full disk", text, effects=frozenset({"trouble"}))
        else:
            text = f"SELECT bench.run('pk_update', 2, secs => 4, sample_interval => 0.1, tags => '{{\"storm\": {number}}}')"
            statement = Statement(number, max(0.2, at - 2), "postgres", "run on a full disk", text)
        plan.sessions.append([statement])
    elif plan.heavy == "drop database":
        number = dice.number()
        text = "SELECT bench.start('pk_update', 3, secs => 20); SELECT bench.load('log', 300000)"
        plan.sessions.append([Statement(number, 0.1, "postgres", "start elsewhere", text, database="storm_passing")])
        plan.faults.append(Fault(at, plan.heavy))
    elif plan.heavy != "slots":
        plan.faults.append(Fault(at, plan.heavy))
