"""Runs against hostile.py, several at once: each ends by itself or goes on until it is stopped, and takes the server along in
neither case.

hostile_modes.py WORK DATA [PATTERN…]

WORK is a directory for files, DATA the cluster's data directory, which PGHOST leads to. Without a pattern (shell's) it tries
the modes that are marked for every day, with MODES=all all of them. Prints a line of TAP for each mode and none at the end.
JOBS is how many are tried at a time.
"""

import asyncio
import fnmatch
import mmap
import os
import re
import signal
import sys
import time

import hostile

# How long a run may go on with a peer that misbehaves before it is stopped or terminated, how long it may take to get
# there, how long its end may then take, and what others take of the machine.
PATIENCE_S = 0.6
START_S = 20.0
END_S = 3.0
SLACK_S = 7.0
# How much memory a process of the run may take above what it had at its start.
MEMORY_MB = 64
# Ends of a run that tell of a peer: connections, authentication, what the peer says or exceeds, what is refused, a stop.
ENDS = r"08\d\d\d|08P01|28\w{3}|54000|0A000|22\w{3}|21000|42601|55000|57014|57P01|58000"

ALL = "R S N A E C D T Z 1 2 3 n t s I K G H W v d c V ?".split()
TAKEN = "E N A S D T C Z K R".split()


def modes():
    """(MODE, whether it is one for every day)"""
    found = {}

    def add(states, deeds, daily=()):
        for state in states.split():
            for deed in deeds:
                mode = f"{state}:{deed}"
                found[mode] = found.get(mode, False) or daily is True or deed in daily

    floods = [f"flood {tag}" for tag in [*ALL, "names", "bytes", "results", "empty", "TD", "broad", "hollow", "rowlets", "parameters",
                                        "notice", "fields", "version", "fatal"]]
    lengths = [f"length {tag} {number}" for tag in TAKEN for number in (-2147483648, -1, 0, 3, 30001, 2147483647)]
    huge = [f"huge {tag}{size}" for tag in "ENADTSCR" for size in ("", " 100000000", " 7000000", " 29999")]
    silent = ["mute", "slow", "close", "garbage"]
    firsts = [f"first {tag}" for tag in [*ALL, "fatal"]]

    def sends(*names):
        return [f"send {name}" for name in names]

    # Every flood at every place, and every day those that something was kept of.
    add("execute/gset", floods, ["flood " + x for x in "C D T S E results empty TD names broad hollow rowlets".split()])
    add("execute execute/simple execute/aset execute/each", floods, ["flood C", "flood results"])
    add("examine", floods, ["flood " + x for x in "S N C D T E results TD bytes".split()])
    add("fetch", floods, ["flood D", "flood rowlets", "flood broad", "flood T", "flood results"])
    add("startup startup.job auth starting starting.job", floods, ["flood S", "flood N", "flood E", "flood R"])
    add("explain counts", floods, ["flood C", "flood D", "flood N", "flood results"])
    add("parse parse.job watch password", floods, ["flood N", "flood S", "flood C"])
    add("cancel farewell farewell/each farewell.job", floods, ["flood N", "flood bytes"])
    add("tls", ["flood bytes", "flood N", "flood E", "mute", "close", "garbage", "slow"], ["flood bytes", "mute"])
    # Lengths that no message has, and messages of any length.
    places = "startup starting examine fetch parse.job execute/gset execute/simple watch"
    add(places, lengths, ["length E 2147483647", "length D -1"])
    add(places, huge, ["huge E 100000000", "huge T 7000000", "huge D"])
    add("execute", huge, ["huge E", "huge D"])
    # The end at each byte: a connection for each, or a run for each.
    add("startup.job starting.job parse.job execute execute/simple execute/gset watch", ["cut +"], True)
    add("startup", [f"cut {n}" for n in range(9)], ["cut 0", "cut 5"])
    add("starting", [f"cut {n}" for n in range(len(hostile.PARAMETERS) + 13 + 6)], ["cut 1", "cut 7", "cut 100"])
    add("examine", [f"cut {n}" for n in range(0, 460)], ["cut 0", "cut 30", "cut 300"])
    add("fetch", [f"cut {n}" for n in range(0, 80)], ["cut 29", "cut 50"])
    add("execute/gset", [f"cut {n}" for n in range(0, 70)], ["cut 40"])
    add("explain counts", [f"cut {n}" for n in range(0, 80)], ["cut 0", "cut 30"])
    # Slowly, never, or something else.
    add("explain counts", silent, ["mute", "close"])
    add("startup startup.job auth starting starting.job password examine fetch parse parse.job execute execute/simple execute/gset watch "
        "cancel farewell farewell.job farewell/each", silent, ["mute", "slow"])
    add("starting examine fetch parse.job execute/gset execute watch startup", firsts, ["first Z"])
    add("execute/reconnect", [*silent, "flood C", "flood N", "huge E 100000000", "first fatal", "cut +"], ["close", "flood C"])
    # Authentication.
    add("auth", sends("continue", "final", "sasl-ok", "sasl-sasl", "sasl-final", "sasl-password", "ok-ok", "ok-password", "ready", "key",
                      "parameters", "sasl-none", "sasl-unended", "sasl-many", "sasl-bad", "passwords", "short", "md5-short", "number",
                      "gss", "negative", "old", "old-unended", "negotiate"), True)
    add("scram", ["right", "signature", "no-signature", "short-signature", "final-error", "final-bad", "unfinished", "iterations",
                  "iterations-", "iterations0", "iterations1", "iterations9", "most", "salt", "nonce", "same-nonce", "error", "order",
                  "long", "bad", "twice"], True)
    add("password", sends("passwords", "continue", "final", "ready"), True)
    # Texts and results.
    texts = sends("bad-error", "bad-state", "bad-fatal", "bad-parameter", "bad-version", "bad-notice", "unended-error", "no-error",
                  "all-fields", "wide-error")
    results = sends("bad-column", "bad-value", "bad-tag", "zero-value", "zero-column", "columns", "columns-lie", "more-values",
                    "no-values", "beyond", "negative-value", "no-description", "no-completion", "descriptions", "completions", "readies",
                    "tag", "untagged", "status", "long-name", "large-value", "large-rows", "rows")
    add("startup starting", texts, ["send wide-error"])
    add("examine fetch parse.job execute execute/simple execute/gset watch", texts, ["send wide-error", "send bad-error"])
    add("examine fetch execute/gset execute/aset", results, ["send columns", "send beyond", "send completions", "send large-value",
                                                             "send zero-value", "send more-values"])
    add("execute execute/simple watch", results, ["send completions"])
    add("explain counts", [*results, *texts], ["send columns", "send large-value", "send bad-error", "send zero-value"])
    add("execute/gset", sends("new-names"), True)
    add("examine", sends("zero-version", "zero-settings", "surrogate", "no-json", "null", "deep", "wrong-types", "long-version",
                         "many-settings", "large-json", "bad-json"), True)
    add("watch", sends("zero-wait", "many-waits", "large-answer"), True)
    add("tls", sends("S", "SN", "N", "X", "tls-E", "S-garbage", "S-plain", "S-alert", "S-fatal", "S-record", "S-change", "S-empty"), True)
    return found


SCRIPTS = {"gset": r"SELECT 1 AS a \gset", "aset": r"SELECT 1 AS a \aset", "feeder": ""}
# What else is known of the end of some modes: what psql says, or the status of the run.
EXPECTED = {
    "scram:right": "processed", "scram:most": "ERROR:  (28000|08P01)", "scram:signature": "ERROR:  28000: .*could not prove",
    "scram:iterations": "ERROR:  08P01", "scram:unfinished": "ERROR:  08P01: .*out of order",
    "examine:send zero-version": "processed", "examine:send zero-settings": "processed", "examine:send bad-json": "processed|ERROR:  08P01",
    "auth:send passwords": "ERROR:  08P01: .*out of order", "tls:send N": "processed",
    "execute/gset:flood C": "08P01", "execute/gset:flood results": "08P01", "execute:flood C": "08P01",
    "execute/gset:send columns": "54000", "execute/gset:send descriptions": "08P01", "execute/gset:send zero-value": "22021",
    "execute/gset:send new-names": "54000", "execute/gset:send wide-error": r"58000",
    "fetch:flood D": "ERROR:  54000", "fetch:send large-rows": "ERROR:  54000", "examine:flood D": "ERROR:  54000",
    "execute/gset:send large-value": "processed", "startup:send wide-error": r"bytes cut\)",
}


def call(mode, number):
    state, _, deed = mode.partition(":")
    state, _, variant = state.partition("/")
    variant = variant.partition(".")[0]
    arguments = {"driver": "'wire'", "target": f"'h{number}'", "clients": "2", "tags": f"""'{{"mode": "{number}"}}'"""}
    what = "script => $s$" + SCRIPTS.get(variant, "SELECT 1 AS a;") + "$s$"
    if state == "fetch":
        what = "'hostile'"
    endless = state in ("watch", "cancel") or deed == "cut +" or variant == "reconnect"
    arguments["secs" if endless else "transactions"] = "60" if endless or deed == "send new-names" else "2" if "large" in deed else "10"
    if state == "watch":
        arguments["sample_interval"] = "0.5"
    if variant == "simple":
        arguments["query_mode"] = "'simple'"
    if variant == "reconnect" or deed == "cut +":
        arguments["on_disconnect"] = "'reconnect'"
    if variant == "each":
        arguments["reconnect"] = "true"
    return f"SELECT bench.run({what}, " + ", ".join(f"{name} => {value}" for name, value in arguments.items()) + ")"


# How a run ended, and its clients' errors.
STATUS = """SELECT status, error ->> 'sqlstate',
    coalesce((SELECT string_agg(DISTINCT sqlstate || ' ' || left(message, 5000), ',')
        FROM bench.errors e WHERE e.run_id = r.run_id), '')
    FROM bench.runs r WHERE tags ->> 'mode' = '%s'"""


class Processes:
    """The processes of the server, by the ports that they are connected to, and the memory that they have taken."""

    def __init__(self, postmaster, ports):
        self.postmaster, self.ports = postmaster, ports
        self.first, self.most, self.names, self.of = {}, {}, {}, {}

    def look(self):
        inodes = {}
        with open("/proc/net/tcp", encoding="ascii") as file:
            for line in list(file)[1:]:
                words = line.split()
                port = int(words[2].rpartition(":")[2], 16)
                if port in self.ports:
                    inodes[words[9]] = self.ports[port]
        for pid in self.children():
            self.measure(pid)
            try:
                for fd in os.listdir(f"/proc/{pid}/fd"):
                    link = os.readlink(f"/proc/{pid}/fd/{fd}")
                    if link.startswith("socket:[") and link[8:-1] in inodes:
                        self.of.setdefault(inodes[link[8:-1]], set()).add(pid)
            except OSError:
                pass

    def children(self):
        with open(f"/proc/{self.postmaster}/task/{self.postmaster}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]

    def measure(self, pid):
        try:
            with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
                status = dict(line.split(":", 1) for line in file if ":" in line)
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                self.names[pid] = file.read().strip("\0 ")
        except OSError:
            return
        anonymous = int(status.get("RssAnon", "0 kB").split()[0])
        self.first.setdefault(pid, anonymous)
        self.most[pid] = max(self.most.get(pid, 0), anonymous)

    def growth_mb(self, mode):
        grown = [(self.most[pid] - self.first[pid], pid) for pid in self.of.get(mode, ()) if pid in self.most]
        kilobytes, pid = max(grown, default=(0, 0))
        return kilobytes / 1024, self.names.get(pid, "")

    def left(self, mode):
        return [pid for pid in self.of.get(mode, ()) if os.path.exists(f"/proc/{pid}/status") and pid in self.children()]


async def psql(*statements, name="hostile"):
    words = [word for statement in statements for word in ("-c", statement)]
    process = await asyncio.create_subprocess_exec(
        "psql", "-XAtq", "-v", "VERBOSITY=verbose", *words, env=os.environ | {"PGAPPNAME": name}, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
    return (await process.communicate())[0].decode("utf-8", "replace")


class Tried:
    def __init__(self, mode, number):
        self.mode, self.number = mode, number
        self.output, self.how, self.took, self.began = "", "by itself", 0.0, time.time()
        self.left, self.word = [], "?"

    async def go(self, processes, begun):
        run = asyncio.create_task(psql(call(self.mode, self.number), name=f"h{self.number}"))
        while not run.done() and not begun[self.number - 1] and time.time() < self.began + START_S:
            await asyncio.wait([run], timeout=0.05)
        await asyncio.wait([run], timeout=START_S if self.mode in EXPECTED else PATIENCE_S)
        ended_ns = time.time()
        if not run.done():
            await self.end(processes)
        await asyncio.wait([run], timeout=END_S + SLACK_S + 5)
        self.took = time.time() - ended_ns
        if run.done():
            self.output = run.result()
        else:
            self.left.append("psql")
            run.cancel()
        deadline = ended_ns + END_S + SLACK_S
        while (left := processes.left(self.mode)) and time.time() < deadline:
            await asyncio.sleep(0.05)
        self.took = max(self.took, time.time() - ended_ns if left else 0)
        self.left += left
        self.status = (await psql(STATUS % self.number)).strip()

    async def end(self, processes):
        stopped = ""
        # A cancel is asked for by a stop alone.
        if self.number % 2 == 0 or self.mode.startswith("cancel"):
            self.how = "stopped"
            stopped = await psql(f"SELECT bench.stop(run_id) FROM bench.runs WHERE tags ->> 'mode' = '{self.number}' "
                                 "AND status IN ('starting', 'running')")
        if stopped.strip() != "t":
            # Before there is a run, its caller is all there is.
            self.how = "terminated"
            await psql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'h{self.number}'")
            for pid in processes.of.get(self.mode, ()):
                try:
                    os.kill(pid, signal.SIGTERM)
                except OSError:
                    pass

    def wrong(self, processes):
        found = []
        grown, who = processes.growth_mb(self.mode)
        if self.took > END_S + SLACK_S or self.left:
            found.append(f"{self.how}, it ended after {self.took:.1f} s; left: {self.left}")
        if grown > MEMORY_MB:
            found.append(f"{who} took {grown:.0f} MB")
        errors = re.findall(r"(?:ERROR|FATAL|PANIC):  ([0-9A-Z]{5})", self.output)
        errors += re.findall(r"(?:^|[|,])([0-9A-Z]{5})(?:[ |]|$)", self.status)
        # What has no SQLSTATE is an internal error.
        may = ENDS + "|XX000" if re.search("bad-state|no-error|fields|length E", self.mode) else ENDS
        strange = [code for code in errors if not re.fullmatch(may, code)]
        if strange:
            found.append(f"errors {strange}")
        if self.how != "terminated" and "This probably means the server terminated" in self.output:
            found.append("the caller's session was lost")
        if self.mode in EXPECTED and not re.search(EXPECTED[self.mode], self.output + self.status, re.S):
            found.append(f"not /{EXPECTED[self.mode]}/")
        if found:
            found.append(self.output[:600].replace("\n", " / ") + " || " + self.status[:300])
        return found


async def main(work, data, patterns):
    known = modes()
    chosen = [mode for mode, daily in known.items()
              if (any(fnmatch.fnmatchcase(mode, pattern) for pattern in patterns) if patterns
                  else daily or os.environ.get("MODES") == "all")]
    ports = os.path.join(work, "ports")
    server = await asyncio.create_subprocess_exec(
        sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "hostile.py"), ports, *chosen)
    try:
        await try_all(data, ports, chosen, known)
    finally:
        server.kill()
        await server.wait()


async def try_all(data, ports, chosen, known):
    while not os.path.exists(ports):
        await asyncio.sleep(0.02)
    with open(ports, encoding="ascii") as file:
        port_of = {mode: int(port) for mode, port in (line.rstrip("\n").split("\t") for line in file)}
    with open(ports + ".done", "rb") as file:
        begun = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    with open(os.path.join(data, "postmaster.pid"), encoding="ascii") as file:
        processes = Processes(int(file.readline()), {port: mode for mode, port in port_of.items()})
    numbers = {mode: number for number, mode in enumerate(chosen, 1)}
    statements = []
    for mode, number in numbers.items():
        tls = "prefer" if mode in ("tls:send N", "tls:mute") else "require" if mode.startswith("tls") else "disable"
        statements.append(f"CREATE SERVER h{number} FOREIGN DATA WRAPPER bench_wire OPTIONS (host '127.0.0.1', port '{port_of[mode]}', "
                          f"dbname 'x', sslmode '{tls}'); CREATE USER MAPPING FOR CURRENT_USER SERVER h{number} "
                          f"OPTIONS (user 'x', password 'sesame');")
    for at in range(0, len(statements), 100):
        said = await psql("".join(statements[at : at + 100]))
        if "ERROR" in said:
            sys.exit(said)
    waiting = list(numbers.items())
    done = asyncio.Event()
    longest, most, bad = 0.0, 0.0, 0

    async def watch():
        while not done.is_set():
            processes.look()
            await asyncio.sleep(0.03)

    async def work_off():
        nonlocal longest, most, bad
        while waiting:
            mode, number = waiting.pop(0)
            tried = Tried(mode, number)
            await tried.go(processes, begun)
            wrong = tried.wrong(processes)
            if tried.how != "by itself":
                longest = max(longest, tried.took)
            most = max(most, processes.growth_mb(mode)[0])
            bad += bool(wrong)
            print(("not ok - " if wrong else "ok - ") + f"hostile: {mode}: ends {tried.how}", flush=True)
            if os.environ.get("VERBOSE"):
                print(f"#   {time.time() - tried.began:.1f} s, end {tried.took:.1f} s, {processes.growth_mb(mode)[0]:.0f} MB: "
                      + " ".join(re.findall("(?:ERROR|FATAL):  .*|.*processed.*", tried.output)[:2])[:150] + " | " + tried.status[:150])
            for line in wrong:
                print(f"#   {line}", flush=True)

    watching = asyncio.create_task(watch())
    jobs = int(os.environ.get("HOSTILE_JOBS", "10"))
    await asyncio.gather(*(work_off() for _ in range(jobs)))
    done.set()
    await watching
    states = {mode.partition(":")[0] for mode in chosen}
    print(f"# {len(chosen)} of {len(known)} modes in {len(states)} states; {bad} bad; the longest end after a stop or a termination "
          f"{longest:.1f} s, the most memory {most:.0f} MB above its start", flush=True)


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
