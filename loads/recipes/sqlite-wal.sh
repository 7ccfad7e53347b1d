# A web application's database in WAL mode: one process writes, three read, each at random times.
filesystem=ext4
size=1G
calls=yes

note() {
    echo "SQLite $(/usr/bin/python3 -c 'import sqlite3; print(sqlite3.sqlite_version)') in WAL mode with synchronous=FULL: a writer of 5 transactions/s, three readers of 3 queries/s each, $seconds s, a database of 250 MB"
}

prepare() {
    cat >"$top/shop.py" <<'PY'
import random, sqlite3, sys, time

path, role, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
shop = sqlite3.connect(path, timeout=30, isolation_level=None)
shop.execute("PRAGMA journal_mode = WAL")
shop.execute("PRAGMA synchronous = FULL")
shop.execute("PRAGMA cache_size = -4000")
chance = random.Random(role)
ROWS = 1_000_000
if role == "new":
    shop.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price REAL, stock INTEGER)")
    shop.execute("CREATE TABLE sale (at REAL, item INTEGER, note TEXT)")
    shop.execute("BEGIN")
    shop.executemany("INSERT INTO item VALUES (?, ?, ?, ?)", ((i, chance.randbytes(90).hex(), i % 997, i % 13) for i in range(ROWS)))
    shop.execute("COMMIT")
    sys.exit()
end = time.monotonic() + seconds
while time.monotonic() < end:
    item = min(int(chance.paretovariate(0.2)), ROWS * 1000) * 7919 % ROWS
    if role == "writer":
        time.sleep(chance.expovariate(5))
        shop.execute("BEGIN IMMEDIATE")
        shop.execute("UPDATE item SET stock = stock - 1 WHERE id = ?", (item,))
        shop.execute("INSERT INTO sale VALUES (?, ?, ?)", (time.time(), item, chance.randbytes(200).hex()))
        shop.execute("COMMIT")
    else:
        time.sleep(chance.expovariate(3))
        shop.execute("SELECT sum(price) FROM item WHERE id BETWEEN ? AND ?", (item, item + 50)).fetchall()
PY
    /usr/bin/python3 "$top/shop.py" "$mounted/shop.db" new 0
}

run() {
    for role in writer reader1 reader2 reader3; do
        /usr/bin/python3 "$top/shop.py" "$mounted/shop.db" $role "$seconds" &
    done
    wait
}
