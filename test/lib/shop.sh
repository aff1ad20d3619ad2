# shellcheck shell=bash
# A trial application, a web shop, for tests and by hand: source this file after test/lib/cluster.sh, in the project's
# root. The database is PGDATABASE.
#
#   shop_load [SCALE]          its schema and rows: SCALE 1 (the default) is 330 MB, 0.02 is 16 MB
#   shop_drive SECS CLIENTS    pgbench sends its statements: three quarters of the clients those of visitors in mode
#                              prepared, the others, one at least, those of the staff in mode simple. OUT is what it
#                              printed. Not 0 if a statement failed

SHOP=test/lib/shop
SHOP_VISITORS='product@30 category@20 recommend@6 search@10 account@10 cart@10 checkout@4 review@3'
SHOP_STAFF='support@60 backoffice@20 dashboard@3 cleanup@10'

shop_load() {
    psql -XAtq -v ON_ERROR_STOP=1 -v scale="${1:-1}" -f $SHOP/schema.sql -f $SHOP/load.sql -f $SHOP/keys.sql
}

# Runs a list of scripts until the time is over.
shop_pgbench() { # MODE SCRIPTS SECS CLIENTS
    local script args=()
    for script in $2; do args+=(-f "$SHOP/scripts/${script/@/.sql@}"); done
    while read -r script; do args+=(-D "$script"); done <<<"$SHOP_SIZES"
    pgbench -n -M "$1" -T "$3" -c "$4" -j 1 --random-seed=20 "${args[@]}" 2>&1
}

# shellcheck disable=SC2034 # OUT is for the scripts
shop_drive() {
    local visitors=$((($2 * 3 + 3) / 4)) staff status=0 file
    staff=$(($2 > visitors ? $2 - visitors : 1))
    # How many rows were loaded, and the last whole month.
    SHOP_SIZES=$(sql "SELECT 'customers=' || max(customer_id) FROM customers" \
        "SELECT 'products=' || max(product_id) FROM products" \
        "SELECT 'categories=' || max(category_id) FROM categories" \
        "SELECT 'orders=' || max(order_id) FROM orders WHERE public_id::text LIKE '0de40000-0000-4000-8000-%'" \
        "SELECT 'month=' || to_char(now() - interval '1 month', 'YYYY-MM')") || return
    file=$(mktemp)
    shop_pgbench simple "$SHOP_STAFF" "$1" "$staff" >"$file" &
    OUT=$(shop_pgbench prepared "$SHOP_VISITORS" "$1" "$visitors") || status=$?
    wait $! || status=$?
    OUT+=$'\n'$(<"$file")
    rm -f "$file"
    # pgbench goes on after a deadlock.
    [[ ! $OUT =~ "failed transactions: "[1-9] ]] && return $status
}
