#!/usr/bin/env bash
# Makes the WAL that walpack is measured on: make_wal.sh OUT [mode ...]
#
# OUT/MODE/LOAD/ gets the whole segments that LOAD wrote on a fresh throwaway cluster.  Modes: fpwoff, fpwon,
# pglz, lz4, zstd (the last three: full-page writes with that wal_compression).  Loads: tpcb, simple, insert, update
# on pgbench's tables; keys of random bytes, with indexes on them: bytea1, bytea3, md5_2, uuid1, and uuid3 of six
# clients; toast; copy without indexes and copy2 with two; regress, PostgreSQL's own regression suite.
# PG_BINDIR, SCALE, TXNS, LOADS change the defaults.  PG_SOURCE is PostgreSQL's source; without it the suite's source is
# fetched.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
OUT=${1:?usage: make_wal.sh OUT [mode ...]}
shift
MODES=("$@")
((${#MODES[@]})) || MODES=(fpwoff fpwon pglz lz4 zstd)
BIN=${PG_BINDIR:-/usr/lib/postgresql/15/bin}
SCALE=${SCALE:-50}
TXNS=${TXNS:-25000}
LOADS=${LOADS:-tpcb simple insert update bytea1 bytea3 md5_2 uuid1 uuid3 toast copy copy2 regress}
source "$HERE/../../test/cluster.sh"
BINDIR=$BIN
new_folder /tmp/walpack_wal
DIR=$FOLDER
trap delete_folder EXIT
connect_here

sql() { "$BIN/psql" -qAtX -v ON_ERROR_STOP=1 -c "$1"; }

wanted() { [[ " $LOADS " == *" $1 "* ]]; }

# load NAME MODE COMMAND...: keeps the segments that the command fills, the last one cut by a switch.
load() {
	local name=$1 mode=$2 first last
	shift 2
	wanted "$name" || return 0
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

# keys TYPE EXPRESSION OF i, INDEXES: a table of random keys
keys() {
	sql "CREATE TABLE $1 (id int, key $2, at timestamptz DEFAULT now(), k int)"
	sql "CREATE INDEX ON $1 (key)"
	(($4 < 2)) || sql "CREATE INDEX ON $1 (key, id)"
	(($4 < 3)) || sql "CREATE INDEX ON $1 (k, key)"
	sql "INSERT INTO $1 (id, key, k) SELECT i, $3, i % 1000 FROM generate_series(1, $((SCALE * ${5:-3000}))) i"
}

keys_by_clients() {
	sql "CREATE TABLE events (key uuid DEFAULT gen_random_uuid(), parent uuid DEFAULT gen_random_uuid(), n int);
		CREATE INDEX ON events (key); CREATE INDEX ON events (parent); CREATE INDEX ON events (parent, key)"
	echo 'INSERT INTO events (n) VALUES (:client_id)' >"$DIR/events.sql"
	bench -f "$DIR/events.sql"
}

# Half of the rows are random, so stored as they are; half are documents that pglz compresses.
toast() {
	sql "CREATE TABLE toasted (id int PRIMARY KEY, body bytea, doc text)"
	sql "INSERT INTO toasted SELECT i,
		CASE WHEN i % 2 = 0 THEN (SELECT string_agg(sha512((i || ' ' || j)::bytea), '') FROM generate_series(1, 100) j) END,
		CASE WHEN i % 2 = 1 THEN (SELECT string_agg(format('{\"id\": %s, \"name\": \"%s\", \"score\": %s}', i * j,
			substr(md5((i * j)::text), 1, 6), j % 77), ', ') FROM generate_series(1, 150) j) END
		FROM generate_series(1, $((SCALE * 200))) i"
}

# price_paid FOLDER/NAME: made once, as sorted text; has the shape of the price-paid data of HM Land Registry
price_paid() {
	[[ -e $DIR/price_paid ]] || "$BIN/psql" -qAtX -v ON_ERROR_STOP=1 -v n=$((SCALE * 8000)) -v file="$DIR/price_paid" \
		-f "$HERE/price_paid.sql" >/dev/null
}

copy() {
	sql "CREATE TABLE $1 (transaction uuid, price numeric, transfer_date date, postcode text, property_type char(1),
		newly_built boolean, duration char(1), paon text, saon text, street text, locality text, city text, district text,
		county text, ppd_category_type char(1), record_status char(1))"
	[[ $1 == copy ]] || sql "CREATE INDEX ON $1 (transaction); CREATE INDEX ON $1 (postcode)"
	sql "COPY $1 FROM '$DIR/price_paid'"
}

# Its results do not matter here: most of its files pass without what the real suite prepares for them.
regress() {
	local source=${PG_SOURCE:-}
	[[ -n $source ]] || source=$("$HERE/../../test/fetch_source.sh" \
		"$("$BIN/pg_config" --version | sed -E 's/^PostgreSQL ([0-9.]+).*/\1/')" "$DIR/source")
	mkdir -p "$DIR/regress"
	cp -r "$source"/src/test/regress/{sql,expected,data,parallel_schedule,resultmap} "$DIR/regress/"
	mkdir -p "$DIR/regress/testtablespace" "$DIR/regress/results"
	gcc -shared -fPIC -O1 -w -I"$("$BIN/pg_config" --includedir-server)" -I"$source/src/include" \
		"$source/src/test/regress/regress.c" -o "$DIR/regress/regress.so"
	cp "$("$BIN/pg_config" --pkglibdir)"/{autoinc,refint}.so "$DIR/regress/" 2>/dev/null || true
	(cd "$DIR/regress" && "$("$BIN/pg_config" --pgxs | xargs dirname)/../test/regress/pg_regress" --bindir="$BIN" \
		--dlpath="$DIR/regress" --inputdir="$DIR/regress" --outputdir="$DIR/regress" --host="$DIR" --port=5432 --user=postgres \
		--max-concurrent-tests=20 --schedule=parallel_schedule >"$DIR/regress.log" 2>&1) || true
	tail -n 5 "$DIR/regress.log"
}

cluster() {
	local fpw=on compression=off
	case $1 in
	fpwoff) fpw=off ;;
	pglz | lz4 | zstd) compression=$1 ;;
	esac
	init_cluster "$DIR/data" <<-CONF
		shared_buffers = 1GB
		wal_keep_size = 20GB
		fsync = off
		synchronous_commit = off
		autovacuum = off
		full_page_writes = $fpw
		wal_compression = $compression
	CONF
	[[ $fpw == on ]] || echo "checkpoint_timeout = 1d" >>"$DIR/data/postgresql.conf"
	start_cluster "$DIR/data"
	! wanted tpcb && ! wanted simple || "$BIN/pgbench" -i -q -s "$SCALE" >/dev/null 2>&1
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
	load bytea1 "$mode" keys bytea1 bytea 'sha512(i::text::bytea)' 1
	load bytea3 "$mode" keys bytea3 bytea 'sha512(i::text::bytea)' 3 2000
	load md5_2 "$mode" keys md5_2 text "(SELECT string_agg(md5((i * 8 + j)::text), '') FROM generate_series(1, 8) j)" 2 1000
	load uuid1 "$mode" keys uuid1 uuid 'gen_random_uuid()' 1 5000
	load uuid3 "$mode" keys_by_clients
	load toast "$mode" toast
	if wanted copy || wanted copy2; then price_paid; fi
	load copy "$mode" copy copy
	load copy2 "$mode" copy copy2
	load regress "$mode" regress
	pg_ctl -D "$DIR/data" -m immediate stop
	rm -rf "$DIR/data"
done
