# A database that answers many short transactions, with its log and its checkpoints: one minute, for tests and demos.
filesystem=ext4
size=1G
. "$(dirname "${BASH_SOURCE[0]}")/postgres.bash"

note() {
    echo "PostgreSQL $(version_of_postgres) under pgbench (scale 20, 8 clients, 150 transactions/s, 60 s, shared_buffers 16 MB, a checkpoint each 30 s)"
}

prepare() { new_bench 20 16MB 30s; }

run() { run_bench 150 60; }
