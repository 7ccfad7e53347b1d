# MariaDB under sysbench: functions of the recipes that use it. `engine` names the storage engine, `settings` are
# further options of the server.

version_of_mariadb() {
    mariadbd --version | grep -o '[0-9.]*' | head -n 1
}

start_mariadb() {
    mariadbd --no-defaults --user=mysql --datadir="$mounted/data" --socket="$top/socket" --pid-file="$top/pid" \
        --skip-networking "${settings[@]}" >/dev/null 2>&1 &
    until mariadb-admin --socket="$top/socket" ping >/dev/null 2>&1; do sleep 0.5; done
}

stop_mariadb() {
    mariadb-admin --socket="$top/socket" shutdown
    wait
}

mix() {
    sysbench oltp_read_write --mysql-socket="$top/socket" --mysql-user=root --mysql-db=shop --tables=4 \
        --table-size=200000 --mysql-storage-engine="$engine" "$@" >/dev/null
}

new_shop() {
    chown mysql "$mounted" "$top"
    mariadb-install-db --no-defaults --user=mysql --datadir="$mounted/data" --auth-root-authentication-method=normal >/dev/null
    start_mariadb
    mariadb --socket="$top/socket" --execute 'CREATE DATABASE shop'
    mix prepare
    stop_mariadb
}

# Transactions of four threads: that many each second, for that long.
run_shop() {
    start_mariadb
    mix --threads=4 --rate="$1" --time="$2" run
    stop_mariadb
}
