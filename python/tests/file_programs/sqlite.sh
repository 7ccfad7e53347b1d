#!/usr/bin/env bash
# SQLite: transactions with a rollback journal and with a write-ahead log, updates, queries, VACUUM.
set -euo pipefail
cd "$2"

setup() {
    printf 'key,value\n' >rows.csv
    seq 2000 | sed 's/.*/&,row number &/' >>rows.csv
}

run() {
    sqlite3 bank.db <<'SQL'
CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
CREATE TABLE history (account INTEGER, amount INTEGER, note TEXT);
CREATE INDEX history_account ON history (account);
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) INSERT INTO account SELECT i, 100 FROM n;
SQL
    local i
    for i in 1 2 3 4 5 6 7 8; do
        printf 'BEGIN; UPDATE account SET balance = balance + %d WHERE id %% 7 = %d; INSERT INTO history SELECT id, %d, hex(zeroblob(40)) FROM account WHERE id %% 7 = %d; COMMIT;\n' "$i" "$((i % 7))" "$i" "$((i % 7))"
    done | sqlite3 bank.db
    sqlite3 bank.db 'BEGIN; DELETE FROM history WHERE account % 2 = 0; ROLLBACK; SELECT count(*), sum(amount) FROM history;' >sums.txt
    sqlite3 bank.db 'DELETE FROM history WHERE account % 3 = 0; VACUUM;'
    sqlite3 log.db <<'SQL' >>sums.txt
PRAGMA journal_mode = WAL;
.import --csv rows.csv item
UPDATE item SET value = value || '.' WHERE key % 10 = 0;
SELECT count(*) FROM item WHERE value LIKE '%.';
PRAGMA wal_checkpoint(TRUNCATE);
SQL
}

"$1"
