# The same shop on an LSM tree: flushes of memtables and compactions. Needs mariadb-plugin-rocksdb and sysbench.
filesystem=xfs
size=2G
calls=yes
engine=rocksdb
settings=(--plugin-load-add=ha_rocksdb --rocksdb-block-cache-size=16M --rocksdb-default-cf-options="write_buffer_size=1m;target_file_size_base=4m;max_bytes_for_level_base=16m")
. "$(dirname "${BASH_SOURCE[0]}")/mariadb.bash"

note() {
    echo "MariaDB $(version_of_mariadb) with RocksDB under sysbench oltp_read_write (4 tables of 200,000 rows, 4 threads, 3 transactions/s, $seconds s, a block cache of 16 MB, memtables of 1 MB)"
}

prepare() { new_shop; }

run() { run_shop 3 "$seconds"; }
