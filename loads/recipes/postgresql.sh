# A database that fits into memory but not into its own buffers.
filesystem=ext4
size=1G
calls=yes
. "$(dirname "${BASH_SOURCE[0]}")/postgres.bash"

note() {
    echo "PostgreSQL $(version_of_postgres) under pgbench (scale 20, 8 clients, 8 transactions/s, $seconds s, shared_buffers 16 MB, a checkpoint each 2 min)"
}

prepare() { new_bench 20 16MB 2min; }

run() { run_bench 8 "$seconds"; }
