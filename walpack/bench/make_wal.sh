#!/usr/bin/env bash
# Makes the WAL that walpack is measured on: make_wal.sh OUT [mode ...]
#
# OUT/MODE/LOAD/ gets the whole segments that LOAD wrote on a fresh throwaway cluster.  Modes: fpwoff, fpwon,
# pglz, lz4, zstd (the last three: full-page writes with that wal_compression).  Loads: tpcb, simple, insert, update.
# Runs as any user but root; PG_BINDIR, SCALE and TXNS change the defaults.
set -euo pipefail

OUT=${1:?usage: make_wal.sh OUT [mode ...]}
shift
MODES=("$@")
((${#MODES[@]})) || MODES=(fpwoff fpwon pglz)
BIN=${PG_BINDIR:-/usr/lib/postgresql/15/bin}
SCALE=${SCALE:-50}
TXNS=${TXNS:-25000}
DIR=$(mktemp -d /tmp/walpack_wal.XXXXXX)
trap '"$BIN/pg_ctl" -s -D "$DIR/data" -m immediate stop 2>/dev/null || true; rm -rf "$DIR"' EXIT
export PGHOST=$DIR PGPORT=5432 PGUSER=postgres PGDATABASE=postgres

sql() { "$BIN/psql" -qAtX -v ON_ERROR_STOP=1 -c "$1"; }

# load NAME MODE COMMAND...: keeps the segments that the command fills, the last one cut by a switch.
load() {
	local name=$1 mode=$2 first last
	shift 2
	sql CHECKPOINT
	sql 'SELECT pg_switch_wal()' >/dev/null
	sql 'CHECKPOINT'
	first=$(sql 'SELECT pg_walfile_name(pg_current_wal_lsn())')
	"$@"
	sql 'SELECT pg_switch_wal()' >/dev/null
	sql 'SELECT 1' >/dev/null
	last=$(sql 'SELECT pg_walfile_name(pg_switch_wal())')
	mkdir -p "$OUT/$mode/$name"
	for file in "$DIR"/data/pg_wal/????????????????????????; do
		file=${file##*/}
		[[ $file < $first || $file > $last || $file == "$last" ]] || cp "$DIR/data/pg_wal/$file" "$OUT/$mode/$name/"
	done
}

bench() { "$BIN/pgbench" -n -j 2 -c 6 -M prepared -t "$TXNS" "$@" >/dev/null 2>&1; }

insert() {
	sql "INSERT INTO orders SELECT i, (random() * 1e6)::int, 'item ' || (i % 977),
		(random() * 1000)::numeric(8, 2), '2023-05-18'::timestamptz + i * interval '7 seconds'
		FROM generate_series(1, $((SCALE * 6000))) i"
}

update() {
	sql 'UPDATE orders SET k = k + 1 WHERE id % 3 = 0'
	sql 'DELETE FROM orders WHERE id % 7 = 0'
	sql 'VACUUM orders'
}

cluster() {
	local fpw=on compression=off
	case $1 in
	fpwoff) fpw=off ;;
	pglz | lz4 | zstd) compression=$1 ;;
	esac
	"$BIN/initdb" -D "$DIR/data" -U postgres -A trust -N --no-locale -E UTF8 >/dev/null
	cat >>"$DIR/data/postgresql.conf" <<-CONF
		listen_addresses = ''
		unix_socket_directories = '$DIR'
		shared_buffers = 1GB
		wal_keep_size = 20GB
		fsync = off
		synchronous_commit = off
		autovacuum = off
		full_page_writes = $fpw
		wal_compression = $compression
	CONF
	[[ $fpw == on ]] || echo "checkpoint_timeout = 1d" >>"$DIR/data/postgresql.conf"
	"$BIN/pg_ctl" -s -D "$DIR/data" -l "$DIR/log" -w start
	"$BIN/pgbench" -i -q -s "$SCALE" >/dev/null 2>&1
	sql 'CREATE TABLE orders (id int PRIMARY KEY, k int, item text, price numeric, ts timestamptz);
		CREATE INDEX ON orders (k)'
	sql 'VACUUM'
}

for mode in "${MODES[@]}"; do
	cluster "$mode"
	load tpcb "$mode" bench
	load simple "$mode" bench -N
	load insert "$mode" insert
	load update "$mode" update
	"$BIN/pg_ctl" -s -D "$DIR/data" -m immediate stop
	rm -rf "$DIR/data"
done
