# shellcheck shell=bash
# A Citus cluster of three nodes, or of CITUS_NODES, on the loopback interface: source this file, which sources
# cluster.sh.
#
#   citus_is_installed      whether the server has Citus; CITUS_MISSING says what is missing
#   citus_or_skip           ends a file of tests where it has not
#   citus_start [LINE…]     a coordinator and two workers, with both extensions; each LINE is added to
#                           their postgresql.conf. `on 0` is in force afterwards
#   on NODE                 psql reaches that node from now on: 0 the coordinator, 1 and 2 the workers
#   on_each STATEMENT…      runs statements on all
#   prepared_left           how many prepared transactions there are on the three
#
# NODE_DIRS and NODE_PORTS are the nodes' directories and ports; a node is stopped and started again by
# `on NODE` and cluster_stop, cluster_resume.

# shellcheck source=test/lib/cluster.sh
. "${BASH_SOURCE%/*}/cluster.sh"

NODE_DIRS=()
NODE_PORTS=()
CITUS_NODES=${CITUS_NODES:-3}

citus_is_installed() {
    [ -e "$("${PG_CONFIG:-pg_config}" --sharedir)/extension/citus.control" ]
}

CITUS_MISSING="this needs Citus 11.1 or newer, with its files in the folders of $("$PG_CONFIG" --version)"

citus_or_skip() { citus_is_installed || { echo "1..0 # SKIP $CITUS_MISSING" && exit; }; }

on() { export PGHOST=${NODE_DIRS[$1]} PGPORT=${NODE_PORTS[$1]}; }

on_each() {
    local node
    for ((node = 0; node < CITUS_NODES; node++)); do on "$node" && sql "$@" || return 1; done
    on 0
}

prepared_left() { on_each 'SELECT count(*) FROM pg_prepared_xacts' | awk '{ n += $1 } END { print n }'; }

citus_start() {
    local node tries port
    for ((node = 0; node < CITUS_NODES; node++)); do
        for tries in 1 2 3; do
            port=$(free_port)
            cluster_start "listen_addresses = '127.0.0.1'" "port = $port" "shared_preload_libraries = 'citus'" \
                'shared_buffers = 128MB' 'max_prepared_transactions = 200' 'citus.enable_statistics_collection = off' \
                "$@" && break
            [ "$tries" -lt 3 ] || return 1
        done
        NODE_DIRS[node]=$PGHOST NODE_PORTS[node]=$port
        on "$node"
        sql 'CREATE EXTENSION citus' || return 1
    done
    on 0
    sql "SELECT citus_set_coordinator_host('127.0.0.1', ${NODE_PORTS[0]})" >/dev/null || return 1
    for ((node = 1; node < CITUS_NODES; node++)); do
        sql "SELECT citus_add_node('127.0.0.1', ${NODE_PORTS[$node]})" >/dev/null || return 1
    done
    sql 'CREATE EXTENSION pgbench_ext' >/dev/null
}
