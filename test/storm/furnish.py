"""What a storm needs in its cluster: roles, the extension, workloads, fixtures, databases, a small disk."""

import os

import plan
import server

ROLES = """
CREATE ROLE storm_users;
CREATE ROLE storm_a LOGIN IN ROLE storm_users;
CREATE ROLE storm_b LOGIN IN ROLE storm_users;
GRANT CREATE ON DATABASE postgres TO storm_users;
-- Those of a new load too.
ALTER DEFAULT PRIVILEGES FOR ROLE postgres, storm_a, storm_b GRANT ALL ON TABLES TO storm_users;
ALTER DEFAULT PRIVILEGES FOR ROLE postgres, storm_a, storm_b GRANT ALL ON SEQUENCES TO storm_users;
ALTER DEFAULT PRIVILEGES FOR ROLE postgres, storm_a, storm_b GRANT USAGE ON SCHEMAS TO storm_users;
"""

EXTENSION = """
CREATE EXTENSION IF NOT EXISTS pg_stat_statements;
CREATE EXTENSION IF NOT EXISTS pgbench_ext;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA bench TO storm_users;
"""


def extension():
    """The extension, with all that a DROP has taken. What was loaded stays without it, and is in the way."""
    server.sql("DROP SCHEMA IF EXISTS bench_data CASCADE", timeout=60)
    for role in ("storm_a", "storm_b"):
        server.sql(f"DROP SCHEMA IF EXISTS {role}_data CASCADE")
    for statement in EXTENSION.strip().split(";\n"):
        server.sql(statement)
    for name, (fixture, script) in plan.SCRIPTS.items():
        of = f"'{fixture}'" if fixture else "NULL"
        server.sql(f"SELECT bench.create_workload('{name}', $script${script}$script$, {of})")
    for fixture, (_, rows) in plan.FIXTURES.items():
        server.sql(f"SELECT bench.load('{fixture}', {rows})", timeout=60)
    server.sql("SELECT bench.load('tpcb')", timeout=60)
    server.sql("SELECT bench.load('orders', options => '{\"foreign_keys\": true}')", timeout=120)


def template():
    """A database to be copied by a round that drops the copy."""
    server.sql("CREATE DATABASE storm_template")
    server.sql("CREATE EXTENSION pgbench_ext", database="storm_template")
    server.sql("SELECT bench.load('pk', 1000)", database="storm_template")


def everything():
    server.sql(ROLES)
    extension()
    template()
    if server.DISK:
        server.sql(f"CREATE TABLESPACE storm_small LOCATION '{server.DISK}'")
        server.sql("GRANT CREATE ON TABLESPACE storm_small TO storm_users")


def before(drawn):
    """What a round's faults need. The disk's filler comes with the fault."""
    if any(fault.name == "drop role" for fault in drawn.faults):
        server.sql("DROP ROLE IF EXISTS storm_passing")
        server.sql("CREATE ROLE storm_passing LOGIN IN ROLE storm_users")
    if drawn.heavy == "drop database":
        server.sql("DROP DATABASE IF EXISTS storm_passing WITH (FORCE)")
        server.sql("CREATE DATABASE storm_passing TEMPLATE storm_template", timeout=60)
    if drawn.heavy == "slots":
        server.configure("max_worker_processes = 8")
        server.restart("fast")
    move_results(drawn, "storm_small", 10)


def after(drawn):
    """Undoes that, and what its faults have left on purpose."""
    if drawn.heavy == "slots":
        server.configure("max_worker_processes = 40")
        server.restart("fast")
    if drawn.heavy == "drop extension":
        extension()
    move_results(drawn, "pg_default", 100)
    server.try_sql("DROP ROLE IF EXISTS storm_passing")
    server.try_sql("DROP DATABASE IF EXISTS storm_passing WITH (FORCE)")
    server.try_sql("SELECT bench.unload('pk') FROM bench.fixtures WHERE schema = 'storm_disk'")


def move_results(drawn, tablespace, fillfactor):
    for fault in drawn.faults:
        # A low fill factor: every row wants more of the disk.
        if fault.name == "disk" and server.DISK and fault.what not in ("load", "temporary files"):
            server.sql(f"ALTER TABLE {fault.what} SET TABLESPACE {tablespace}", timeout=60)
            server.sql(f"ALTER TABLE {fault.what} SET (fillfactor = {fillfactor})")
            if os.path.exists(os.path.join(server.DISK, "filler")):
                os.remove(os.path.join(server.DISK, "filler"))
