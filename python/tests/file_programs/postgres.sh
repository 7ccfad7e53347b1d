#!/usr/bin/env bash
# PostgreSQL: a server with pgbench's tables under four clients, and its stop.
set -euo pipefail
cd "$2"
export PGHOST=$PWD/socket PGUSER=postgres PGDATABASE=postgres
programs=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort --version-sort | tail -1)
PATH=$programs:$PATH

# The server refuses to run as root.
as_user() {
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"
    else
        "$@"
    fi
}

server() {
    as_user pg_ctl --silent --pgdata=data --log=log.txt --wait "$@"
}

setup() {
    mkdir data socket
    [ "$(id -u)" != 0 ] || chown nobody:nogroup . data socket
    as_user initdb --pgdata=data --username=postgres --auth=trust --no-sync >/dev/null
    printf "%s\n" "listen_addresses = ''" "unix_socket_directories = '$PGHOST'" 'shared_buffers = 1MB' \
        'max_wal_size = 64MB' >>data/postgresql.conf
    server start
    as_user pgbench --initialize --quiet --scale=1 2>/dev/null
    server stop
}

run() {
    server start
    as_user pgbench --client=4 --jobs=2 --transactions="${TRANSACTIONS:-50}" >/dev/null 2>&1
    as_user psql --quiet --command='CHECKPOINT' --command='VACUUM pgbench_history'
    server stop
}

"$1"
