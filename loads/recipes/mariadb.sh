# A shop's mix of reads and writes. Needs mariadb-server and sysbench.
filesystem=xfs
size=2G
calls=yes
engine=innodb
settings=(--innodb-buffer-pool-size=32M --innodb-log-file-size=64M)
. "$(dirname "${BASH_SOURCE[0]}")/mariadb.bash"

note() {
    echo "MariaDB $(version_of_mariadb) with InnoDB under sysbench oltp_read_write (4 tables of 200,000 rows, 4 threads, 3 transactions/s, $seconds s, a buffer pool of 32 MB)"
}

prepare() { new_shop; }

run() { run_shop 3 "$seconds"; }
