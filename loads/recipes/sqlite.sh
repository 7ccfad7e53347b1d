# Single-row transactions, then queries, an index and VACUUM: a closed loop of 12 s, for tests and demos.
filesystem=xfs
size=512M

note() {
    echo "SQLite $(sqlite3 --version | cut -d ' ' -f 1): 2000 transactions of one row with a rollback journal, range queries, an index, a VACUUM"
}

prepare() {
    sqlite3 "$mounted/shop.db" "
        CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price REAL, stock INTEGER);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000)
        INSERT INTO item SELECT i, hex(randomblob(40)), i % 997, i % 13 FROM n;"
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
    }' >"$top/work.sql"
}

run() {
    sqlite3 "$mounted/shop.db" <"$top/work.sql" >/dev/null
}
