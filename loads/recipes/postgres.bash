# PostgreSQL: functions of the recipes that use it.

pg=$(find /usr/lib/postgresql -maxdepth 2 -name bin | sort -V | tail -n 1)

as_postgres() {
    (cd / && runuser -u postgres -- "$@")
}

start_postgres() {
    as_postgres "$pg/pg_ctl" -w -D "$mounted/data" -l /dev/null start >/dev/null
}

stop_postgres() {
    as_postgres "$pg/pg_ctl" -w -D "$mounted/data" stop >/dev/null
}

# A database of pgbench of that scale, with that memory and time between checkpoints.
new_bench() {
    chown postgres "$mounted" "$top"
    as_postgres "$pg/initdb" -D "$mounted/data" --no-sync --auth=trust >/dev/null
    cat >>"$mounted/data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$top'
shared_buffers = $2
checkpoint_timeout = $3
max_wal_size = 128MB
CONF
    start_postgres
    as_postgres createdb -h "$top" bench
    as_postgres "$pg/pgbench" -h "$top" --initialize --scale "$1" --quiet bench 2>/dev/null
    stop_postgres
}

# Transactions of eight clients: that many each second, for that long.
run_bench() {
    start_postgres
    as_postgres "$pg/pgbench" -h "$top" --client 8 --jobs 2 --rate "$1" --time "$2" bench >/dev/null 2>/dev/null
    stop_postgres
}

version_of_postgres() {
    "$pg/postgres" --version | grep -o '[0-9.]*' | head -n 1
}
