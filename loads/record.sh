#!/usr/bin/env bash
# Records the loads of this directory anew: sudo loads/record.sh [NAME…]
#
# Each runs real programs on a fresh file system on a loop device of its own, with nothing of it in the page cache, and
# records the device meanwhile. Needs root, PostgreSQL, sqlite3, git, mkfs.ext4, mkfs.xfs, and iosonar: the program that
# IOSONAR names, or the one on the path.
set -euo pipefail

iosonar=$(realpath "$(command -v "${IOSONAR:-iosonar}")")
here=$(cd "$(dirname "$0")" && pwd)
# The loop device's file: on a disk, for latencies of a disk.
image=$(mktemp "${TMPDIR:-/var/tmp}/iosonar-load.XXXXXX")
top=$(mktemp -d)
mounted=$top/mounted
mkdir "$mounted"
chmod 755 "$top"
device=

clean_up() {
    if mountpoint -q "$mounted"; then umount "$mounted"; fi
    if [ -n "$device" ]; then losetup --detach "$device"; fi
    rm -rf "$top" "$image"
}
trap clean_up EXIT

# A fresh file system of that type and size on the loop device, mounted.
fresh() {
    local type=$1 size=$2
    if [ -n "$device" ]; then
        umount "$mounted"
        losetup --detach "$device"
    fi
    rm "$image"
    truncate --size "$size" "$image"
    device=$(losetup --find --show --direct-io=on "$image")
    "mkfs.$type" -q "$device"
    mount "$device" "$mounted"
}

# Records the device while a function of this script runs, with nothing of the file system in memory before.
record() {
    local name=$1 note=$2 function=$3
    umount "$mounted"
    mount "$device" "$mounted"
    rm -f "$here/$name.load.parquet"
    export mounted
    export -f "${function?}"
    "$iosonar" record --device "$device" --output "$here/$name.load.parquet" \
        --note "$note; recorded by the iosonar project, CC0 1.0" -- bash -euo pipefail -c "$function; sync -f $mounted"
}

# --- pgbench: a database that answers many short transactions, with its log and its checkpoints -----------------------

run_pgbench() {
    as_postgres() { (cd / && runuser -u postgres -- "$@"); }
    as_postgres "$pg/pg_ctl" -w -D "$mounted/data" -l /dev/null start >/dev/null
    as_postgres "$pg/pgbench" -h /tmp -p 54399 --client 8 --jobs 2 --rate 150 --time 60 bench >/dev/null 2>/dev/null
    as_postgres "$pg/pg_ctl" -w -D "$mounted/data" stop >/dev/null
}

load_pgbench() {
    pg=$(find /usr/lib/postgresql -maxdepth 2 -name bin | sort -V | tail -n 1)
    export pg
    fresh ext4 1G
    chown postgres "$mounted"
    (
        cd /
        runuser -u postgres -- "$pg/initdb" -D "$mounted/data" --no-sync --auth=trust >/dev/null
        cat >>"$mounted/data/postgresql.conf" <<'CONF'
listen_addresses = ''
unix_socket_directories = '/tmp'
port = 54399
shared_buffers = 16MB
checkpoint_timeout = 30s
max_wal_size = 128MB
CONF
        runuser -u postgres -- "$pg/pg_ctl" -w -D "$mounted/data" -l /dev/null start >/dev/null
        runuser -u postgres -- createdb -h /tmp -p 54399 bench
        runuser -u postgres -- "$pg/pgbench" -h /tmp -p 54399 --initialize --scale 20 --quiet bench 2>/dev/null
        runuser -u postgres -- "$pg/pg_ctl" -w -D "$mounted/data" stop >/dev/null
    )
    record pgbench "PostgreSQL $("$pg/postgres" --version | grep -o '[0-9.]*' | head -n 1) under pgbench (scale 20, 8 clients, 150 transactions/s, 60 s, shared_buffers 16 MB, a checkpoint each 30 s) on ext4" run_pgbench
}

# --- sqlite: single-row transactions, then queries, an index and VACUUM -----------------------------------------------

run_sqlite() {
    sqlite3 "$mounted/shop.db" <"$sql"
}

load_sqlite() {
    fresh xfs 512M
    sqlite3 "$mounted/shop.db" "
        CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price REAL, stock INTEGER);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000)
        INSERT INTO item SELECT i, hex(randomblob(40)), i % 997, i % 13 FROM n;"
    sql=$top/work.sql
    export sql
    awk 'BEGIN {
        srand(1)
        print "PRAGMA cache_size = -2000; PRAGMA synchronous = FULL;"
        for (i = 0; i < 1500; i++) {
            id = int(rand() * 400000)
            printf "UPDATE item SET stock = stock - 1 WHERE id = %d;\n", id
            if (i % 5 == 0) printf "SELECT sum(price) FROM item WHERE id BETWEEN %d AND %d;\n", id, id + 500
        }
        print "CREATE INDEX by_name ON item(name);"
        for (i = 0; i < 500; i++) printf "INSERT INTO item SELECT NULL, hex(randomblob(40)), %d, 1;\n", i
        print "DELETE FROM item WHERE id % 7 = 0;"
        print "VACUUM;"
    }' >"$sql"
    record sqlite "SQLite $(sqlite3 --version | cut -d ' ' -f 1): 2000 transactions of one row with a rollback journal, range queries, an index, a VACUUM, on xfs" run_sqlite >/dev/null
}

# --- git: many small files come and go ---------------------------------------------------------------------------------

run_git() {
    cd "$mounted"
    git clone --quiet "file://$mounted/origin" copy
    cd copy
    for commit in $(git rev-list HEAD | awk 'NR % 4 == 0'); do
        git checkout --quiet "$commit"
        sleep 0.2
    done
    git checkout --quiet -b work
    for i in 1 2 3 4 5; do
        find . -name "*$i.txt" -exec sed -i '1s/^/changed /' {} +
        git -c core.fsync=all commit --quiet --all --message "change $i"
        sleep 0.2
    done
    git gc --quiet --prune=now
}

load_git() {
    fresh ext4 512M
    GIT_AUTHOR_NAME=nobody GIT_AUTHOR_EMAIL=nobody@localhost
    GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL
    GIT_CONFIG_GLOBAL=/dev/null
    export "${!GIT_@}"
    git init --quiet --initial-branch main "$mounted/origin"
    (
        cd "$mounted/origin"
        for commit in $(seq 24); do
            awk -v commit="$commit" 'BEGIN {
                srand(commit)
                for (i = 0; i < 150; i++) {
                    file = sprintf("%d/%d.txt", int(rand() * 20), int(rand() * 100))
                    system("mkdir -p " int(file))
                    for (line = 0; line < 20 + rand() * 200; line++) printf "%d %f\n", line, rand() > file
                    close(file)
                }
            }'
            git add --all
            git commit --quiet --message "commit $commit"
        done
    )
    record git "git $(git --version | cut -d ' ' -f 3): a clone, checkouts of old commits, commits that are made durable, a gc, on ext4" run_git
}

for name in "${@:-pgbench sqlite git}"; do
    for one in $name; do
        "load_$one"
    done
done
ls -l "$here"/*.load.parquet
