"""The throwaway cluster from outside: statements, processes, files, log, and its ends.

The wrapper has started it: PGHOST is its folder, with `data` and `log`; STORM_AS names the
command that runs another as the cluster's user (empty: we are that user).
"""

import glob
import json
import os
import re
import struct
import subprocess
import time

HOME = os.environ.get("PGHOST", "")
DATA = os.path.join(HOME, "data")
LOG = os.path.join(HOME, "log")
AS_OWNER = os.environ.get("STORM_AS", "").split()
DISK = os.environ.get("STORM_DISK", "")

# First words of dynamic shared memory that is the server's own (dsm.c, dsa.c, parallel.c).
DSM_CONTROL, DSA_SEGMENT, PARALLEL = 0x9A503D32, 0x0CE26608, 0x50477C7C


class Failed(Exception):
    """A statement that ended with an error, or a server that did not answer."""


def environment(role="postgres", database="postgres", name="storm check"):
    return dict(os.environ, PGUSER=role, PGDATABASE=database, PGAPPNAME=name, PGCONNECT_TIMEOUT="10")


def sql(statement, role="postgres", database="postgres", timeout=30):
    """The output of a statement as bare text."""
    command = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose", "-c", statement]
    try:
        done = subprocess.run(
            command, env=environment(role, database), capture_output=True, text=True, timeout=timeout,
            stdin=subprocess.DEVNULL, errors="replace")
    except subprocess.TimeoutExpired as expired:
        raise Failed(f"no answer within {timeout} s: {statement}") from expired
    if done.returncode != 0:
        raise Failed(done.stderr.strip())
    return done.stdout.strip()


def rows(query, **options):
    """The rows of a query as dictionaries."""
    text = sql(f"SELECT pg_catalog.json_agg(t) FROM ({query}) AS t", **options)
    return json.loads(text) if text else []


def try_sql(statement, **options):
    """As `sql`; None where it failed."""
    try:
        return sql(statement, **options)
    except Failed:
        return None


def postmaster():
    """The postmaster's process id, or None."""
    try:
        with open(os.path.join(DATA, "postmaster.pid"), encoding="utf-8") as file:
            pid = int(file.readline())
        os.kill(pid, 0)
        return pid
    except (OSError, ValueError):
        return None


def processes():
    """Process ids of the server's children, with their titles."""
    parent, found = postmaster(), {}
    if parent is None:
        return found
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            if int(fields[1]) != parent or fields[0] == "Z":
                continue
            pid = int(path.split("/")[2])
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                found[pid] = file.read().replace("\0", " ").strip().removeprefix("postgres: ")
        except (OSError, IndexError, ValueError):
            continue
    return found


def workers(kind=""):
    """Those of them that are the extension's, of a kind: client, coordinator, load, loader, sweep."""
    title = f"pgbench_ext {kind}".strip()
    return sorted(pid for pid, name in processes().items() if re.match(title + r"\b", name))


def segments_of(pid):
    """The handles of the extension's segments that a process has mapped: a sweep's leader has its run's too."""
    own = set(segments())
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
            mapped = {int(handle) for handle in re.findall(r"/mmap\.(\d+)", file.read())}
    except OSError:
        return frozenset()
    return frozenset(mapped & own)


def segments():
    """Handles of dynamic shared memory that is not the server's own (dynamic_shared_memory_type = mmap)."""
    found = []
    for path in glob.glob(os.path.join(DATA, "pg_dynshmem", "mmap.*")):
        try:
            with open(path, "rb") as file:
                word = struct.unpack("=I", file.read(4))[0]
        except (OSError, struct.error):
            continue
        # An area's segment has its index in its first word, and the statistics' area no handle.
        if word not in (DSM_CONTROL, PARALLEL) and word ^ DSA_SEGMENT > 0xFFFF:
            found.append(int(path.rsplit(".", 1)[1]))
    return sorted(found)


def temporary_files():
    patterns = ["base/pgsql_tmp/*", "pg_tblspc/*/PG_*/pgsql_tmp/*"]
    return sorted(path for pattern in patterns for path in glob.glob(os.path.join(DATA, pattern)))


def auto_conf():
    with open(os.path.join(DATA, "postgresql.auto.conf"), encoding="utf-8") as file:
        return file.read()


def log_size():
    return os.path.getsize(LOG)


def log_since(offset):
    with open(LOG, encoding="utf-8", errors="replace") as file:
        file.seek(offset)
        return file.read()


def as_owner(*command, **options):
    return subprocess.run(
        [*AS_OWNER, *command], cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options)


def stop(mode):
    return as_owner("pg_ctl", "-D", DATA, "-m", mode, "-s", "-w", "-t", "60", "stop").returncode == 0


def start():
    # Its output goes to the log: a pipe would be held open by the server.
    command = [*AS_OWNER, "pg_ctl", "-D", DATA, "-l", LOG, "-s", "-w", "-t", "60", "start"]
    null = subprocess.DEVNULL
    return subprocess.run(command, cwd="/", stdin=null, stdout=null, stderr=null, check=False).returncode == 0


def restart(mode):
    return stop(mode) and start()


def configure(line):
    """Adds a line to postgresql.conf, as the cluster's user would."""
    path = os.path.join(DATA, "postgresql.conf")
    with open(path, "a", encoding="utf-8") as file:
        file.write(line + "\n")


def wait_until_up(secs=60):
    """Waits until sessions are let in and all auxiliary processes are there."""
    deadline = time.time() + secs
    while time.time() < deadline:
        up = try_sql("SELECT pg_is_in_recovery() OR NOT EXISTS "
                     "(SELECT FROM pg_stat_activity WHERE backend_type = 'checkpointer')", timeout=10)
        if up == "f":
            return True
        if postmaster() is None:
            return False
        time.sleep(0.1)
    return False


def identity():
    """What changes when the server goes down: postmaster and checkpointer."""
    return [postmaster(), *(pid for pid, name in processes().items() if name.startswith("checkpointer"))]
