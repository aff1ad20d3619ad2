# shellcheck shell=bash
# Throwaway PostgreSQL clusters for demo, tests and benchmark: source this file.
#
#   cluster_start [LINE…]   a new cluster, reached by PGHOST, PGPORT, PGUSER and PGDATABASE;
#                           each LINE is added to its postgresql.conf ("fsync = off"), and CLUSTER_LINES after them;
#                           before them TEST_CLIENT_ROLE, where it is set, for superusers' clients
#   cluster_stop [MODE]     stop it (fast, smart or immediate), keeping its files
#   cluster_resume          start it again; PGHOST says which, as for the others
#   cluster_restart [MODE]  both
#   cluster_remove          stop it and remove its files; its log is kept in the folder CLUSTER_LOGS, if there is that
#   free_port               a TCP port for a cluster that listens on one
#   as_pg COMMAND…          run a command as the operating-system user of the clusters
#   sql STATEMENT…          run statements, each in its own transaction, and print bare rows
#   at_exit COMMAND         run a command when the script ends, before the clusters are removed; the last named comes
# first
#   use_server PG_CONFIG    puts another server's programs first on the PATH, and sets PG_CONFIG
#   copy_server FOLDER [FLAG]
#                           copies the server of PG_CONFIG: its files keep their paths, below FOLDER. Programs are
#                           copied, the rest are links, or copies with the flag -L
#   private_server [VARIABLE=VALUE…]
#                           builds the extension, installs it into a temporary copy of the server of PG_CONFIG, and uses
#                           that from here on. The server itself is not changed
#   install_privately FOLDER [VARIABLE=VALUE…]
#                           the same with a copy in FOLDER
#   cluster_template FOLDER makes a new data directory in that new folder. Where CLUSTER_TEMPLATE names it, clusters
#                           copy it, which is faster than initdb. Such clusters have one system identifier: a test that
#                           needs two says `CLUSTER_TEMPLATE='' cluster_start`
#
# Where SENSOR_LIBRARIES names the folder of the libraries that test/lib/sensor/build has built, clusters preload the
# one of their version, and what it has seen is kept in the folder TEST_RECORDS when they are removed.
#
# Clusters listen only on a socket in their own temporary directory, so they get in the way
# of nobody. Several may run at once: keep the PGHOST of each; $PGHOST/log is its log and
# $PGHOST/data its data directory. All are stopped and removed when the script ends, in
# the one EXIT trap there is: at_exit adds to it.

[ -z "${CLUSTER_USER:-}" ] || return 0 # sourced already
CLUSTER_DIRS=()
AT_EXIT=()

use_server() { # PG_CONFIG
    local libraries
    export PG_CONFIG=$1
    PATH=$("$1" --bindir):$PATH
    export PATH
    # A server outside of the system brings a libpq for dblink and postgres_fdw, which the loader knows nothing of.
    libraries=$("$1" --libdir)
    if [[ $libraries != /usr/lib* ]]; then
        export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    fi
}
use_server "${PG_CONFIG:-pg_config}"
# Backtraces in error details are for developers.
unset RUST_BACKTRACE PGHOSTADDR PGSERVICE PGSERVICEFILE PGPASSFILE PGOPTIONS PGSSLMODE PGCLIENTENCODING

# PostgreSQL refuses to run as root: then an ordinary user that exists takes its place.
if [ "$(id -u)" -ne 0 ]; then
    CLUSTER_USER=$(id -un)
elif id postgres >/dev/null 2>&1; then
    CLUSTER_USER=postgres
elif [ "${SUDO_USER:-root}" != root ]; then
    CLUSTER_USER=$SUDO_USER
else
    CLUSTER_USER=nobody
fi

as_pg() {
    if [ "$(id -u)" -ne 0 ]; then
        "$@"
    else
        # From a directory that it may read, and without root's home.
        (cd / && exec runuser -u "$CLUSTER_USER" -- env HOME=/nonexistent "$@")
    fi
}

sql() {
    local args=() statement
    for statement in "$@"; do args+=(-c "$statement"); done
    psql -XAtq -v ON_ERROR_STOP=1 "${args[@]}"
}

# A temporary directory that the clusters' user can reach; DIR is its name.
cluster_directory() {
    local base dir=
    for base in "${TMPDIR:-/tmp}" /tmp; do
        dir=$(mktemp -d "$base/pgbench_ext.XXXXXX") || continue
        CLUSTER_DIRS+=("$dir")
        [ "$(id -u)" -ne 0 ] || chown "$CLUSTER_USER" "$dir"
        # A socket's path holds 107 bytes, and the cluster's user must reach it.
        if [ ${#dir} -le 80 ] && as_pg test -w "$dir"; then break; fi
        rmdir "$dir"
        dir=
    done
    if [ -z "$dir" ]; then
        echo "no temporary directory that user $CLUSTER_USER can reach" >&2
        return 1
    fi
    DIR=$dir
}

# A program of the server looks for the server's files relative to its own path, in which it resolves links. So programs
# that do are copied.
copy_server() { # FOLDER [-s|-L]
    local bindir option from
    bindir=$("$PG_CONFIG" --bindir) || return
    for option in libdir pkglibdir includedir includedir-server sharedir; do
        from=$("$PG_CONFIG" "--$option")
        case $from in
        # The system's own, which compilers and loaders know.
        /usr/include | /usr/lib | /usr/lib64 | /usr/lib/*-linux-* | /usr/local/include | /usr/local/lib) continue ;;
        esac
        if [ -d "$from" ] && [ ! -d "$1$from" ]; then
            (umask 022 && mkdir -p "$1$from" && cp -R "${2:--s}" "$from/." "$1$from/") || return
        fi
    done
    (umask 022 && mkdir -p "$1$bindir" && cp -R -s "$bindir/." "$1$bindir/" &&
        cp --remove-destination "$bindir"/{postgres,pg_ctl,initdb,pg_config} "$1$bindir/")
}

# Another extension of this name may be installed in the server: links to its files are removed.
install_privately() { # FOLDER [VARIABLE=VALUE…]
    local bindir
    bindir=$("$PG_CONFIG" --bindir) && copy_server "$1" &&
        rm -f "$1$("$PG_CONFIG" --pkglibdir)"/pgbench_ext* "$1$("$PG_CONFIG" --sharedir)"/extension/pgbench_ext* &&
        # A PG_CONFIG on make's command line would outweigh this one.
        env -u MAKEFLAGS "${MAKE:-make}" --no-print-directory install DESTDIR="$1" "${@:2}" || return
    if ! as_pg "$1$bindir/postgres" --version >/dev/null; then
        echo "user $CLUSTER_USER cannot run programs in $1: set TMPDIR to a folder where that is possible" >&2
        return 1
    fi
    use_server "$1$bindir/pg_config"
}

private_server() { # [VARIABLE=VALUE…]
    local DIR
    cluster_directory && install_privately "$DIR" "$@"
}

cluster_initdb() { # DIRECTORY
    as_pg initdb -D "$1/data" -U postgres -A trust -E UTF8 --no-locale --no-sync \
        >"$1/initdb.log" 2>&1 || { cat "$1/initdb.log" >&2; return 1; }
}

cluster_template() { # FOLDER
    as_pg mkdir "$1" && as_pg touch "$1/initdb.log" && cluster_initdb "$1"
}

# Adds the sensor to the libraries that LINES preload, the last of which counts. By the version of the files, for that
# of PG_CONFIG may be another one.
with_sensor() { # LINES
    local preload library
    printf '%s\n' "$1"
    library=${SENSOR_LIBRARIES:-}/sensor-$(as_pg cat "$PGHOST/data/PG_VERSION").so
    [ -e "$library" ] || return 0
    preload=$(sed -nE "s/^ *shared_preload_libraries *= *'(.*)'.*/\1/p" <<<"$1" | tail -n 1)
    echo "shared_preload_libraries = '${preload:+$preload, }\"$library\"'"
}

# The four counts at the beginning of sensor.counts, and the violations.
keep_sensor() {
    local data=$PGHOST/data
    if [ -n "${TEST_RECORDS:-}" ] && [ -e "$data/sensor.counts" ]; then
        {
            od -An -v -t u8 -N 32 -w32 "$data/sensor.counts"
            [ ! -e "$data/sensor.log" ] || cat "$data/sensor.log"
        } >"$TEST_RECORDS/${TEST_FILE:-${0##*/}}${PGHOST##*/pgbench_ext}.sensor"
    fi
}

cluster_start() {
    local DIR
    cluster_directory || return
    export PGHOST=$DIR PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
    if [ -n "${CLUSTER_TEMPLATE:-}" ]; then
        as_pg cp -R -p "$CLUSTER_TEMPLATE/data" "$PGHOST/data" || return
    else
        cluster_initdb "$PGHOST" || return
    fi
    with_sensor "$(
        echo "listen_addresses = ''"
        echo "unix_socket_directories = '$PGHOST'"
        echo "max_connections = 100"
        echo "max_worker_processes = 300"
        echo "shared_buffers = 256MB"
        echo "max_wal_size = 4GB"
        echo "log_line_prefix = '%m [%p] %b '"
        [ -z "${TEST_CLIENT_ROLE:-}" ] || echo "pgbench_ext.client_role = '$TEST_CLIENT_ROLE'"
        printf '%s\n' "$@"
        echo "${CLUSTER_LINES:-}"
    )" | as_pg tee -a "$PGHOST/data/postgresql.conf" >/dev/null
    cluster_resume
}

cluster_resume() {
    as_pg pg_ctl -D "$PGHOST/data" -l "$PGHOST/log" -s -w -t 120 start </dev/null ||
        { tail -n 20 "$PGHOST/log" >&2; return 1; }
}

cluster_stop() {
    as_pg pg_ctl -D "$PGHOST/data" -m "${1:-fast}" -s -w -t 120 stop
}

cluster_restart() {
    cluster_stop "$@" && cluster_resume
}

cluster_remove() {
    [ -d "${PGHOST:-}" ] || return 0
    if [ -e "$PGHOST/data/postmaster.pid" ]; then
        cluster_stop immediate >/dev/null 2>&1 || true
    fi
    if [ -n "${CLUSTER_LOGS:-}" ] && [ -e "$PGHOST/log" ]; then
        cp "$PGHOST/log" "$CLUSTER_LOGS/${TEST_FILE:-${0##*/}}${PGHOST##*/pgbench_ext}.log"
    fi
    keep_sensor
    rm -rf "$PGHOST"
}

# One that nobody listens on now; whoever takes it first, the other's start fails and another is tried.
free_port() {
    local port
    while port=$((20000 + RANDOM % 30000)); (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
    echo "$port"
}

# The last one first: its programs may be in an earlier folder.
cluster_remove_all() {
    local i
    for ((i = ${#CLUSTER_DIRS[@]} - 1; i >= 0; i--)); do PGHOST=${CLUSTER_DIRS[i]} cluster_remove; done
}

# Words of a server's log that tell of a bug below SQL.
BAD_WORDS='PANIC:|TRAP:|[ _]leak|unexpected state|non-empty SPI|still referenced|not closed|problem in alloc set'
BAD_WORDS+='|past chunk|while in [A-Z]+ state|you don.t own a lock|still held'

at_exit() { AT_EXIT=("$1" "${AT_EXIT[@]}"); }

cluster_exit() {
    local command
    trap '' HUP INT PIPE TERM # nothing shall come between
    for command in "${AT_EXIT[@]}"; do eval "$command" || true; done
    cluster_remove_all
}

trap cluster_exit EXIT
for signal in HUP INT PIPE TERM; do
    # shellcheck disable=SC2064 # the signal of now
    trap "exit $((128 + $(kill -l $signal)))" "$signal"
done
