# A database that is larger than the page cache keeps in the time.
filesystem=ext4
size=4G
calls=yes
. "$(dirname "${BASH_SOURCE[0]}")/postgres.bash"

note() {
    echo "PostgreSQL $(version_of_postgres) under pgbench (scale 150, 8 clients, 8 transactions/s, $seconds s, shared_buffers 128 MB, a checkpoint each 5 min)"
}

prepare() { new_bench 150 128MB 5min; }

run() { run_bench 8 "$seconds"; }
