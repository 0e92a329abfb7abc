#!/usr/bin/env bash
# tidset in a server:  run.sh test | bench [lookups [rounds]] | queries [rounds]
#
#   PG_CONFIG=...	which server; bench has TidStore beside it from PostgreSQL 17 on
#   LOAD=n			n processes write to 64 MB of memory each all the time, for bench and queries
#   ONLY="2 8"		only these shapes, or queries, counted from 0
#
# Everything is in a folder below /tmp that is deleted at the end.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PG_CONFIG=${PG_CONFIG:-/usr/lib/postgresql/15/bin/pg_config}
BINDIR=$("$PG_CONFIG" --bindir)
source "$HERE/../../../test/cluster.sh"

finish() {
	((${#load[@]} == 0)) || kill "${load[@]}" 2>/dev/null || true
	delete_folder
}

# What leaves little of the caches to others.
load=()
start_load() {
	local i
	for ((i = 0; i < ${LOAD:-0}; i++)); do
		dd if=/dev/zero of=/dev/null bs=64M 2>/dev/null &
		load+=($!)
	done
	echo "$("$PG_CONFIG" --version); medians of $1 rounds in turns; ${LOAD:-0} processes thrash the caches"
}

start() {
	new_folder "${TMPDIR:-/tmp}/tidset"
	trap finish EXIT
	mkdir "$FOLDER/build"
	cp "$HERE"/../../*.[ch] "$HERE"/../../../common/compat.h "$HERE"/../../bench/tidset_shapes.h "$HERE"/*.c "$HERE"/Makefile "$FOLDER/build"
	make -s -C "$FOLDER/build" PG_CONFIG="$PG_CONFIG" with_llvm=no >"$FOLDER/log" 2>&1 || {
		cat "$FOLDER/log"
		exit 1
	}
	give_server "$FOLDER/build"
	init_cluster "$FOLDER/data" <<<'jit = off'
	start_cluster "$FOLDER/data"
	connect_here
	sql "CREATE FUNCTION tidset_compare(int, bool, int, int) RETURNS float8[] LANGUAGE C AS '$FOLDER/build/tidset_server'"
	sql "CREATE FUNCTION tidset_query(int, bool, int) RETURNS float8[] LANGUAGE C AS '$FOLDER/build/tidset_server'"
	sql "CREATE FUNCTION tidset_local_check(int) RETURNS bool LANGUAGE C AS '$FOLDER/build/tidset_server'"
	sql "CREATE FUNCTION tidset_shared_limit(bigint) RETURNS bigint[] LANGUAGE C AS '$FOLDER/build/tidset_server'"
	sql "CREATE FUNCTION tidset_share(int) RETURNS bigint[] LANGUAGE C AS '$FOLDER/build/tidset_server'"
	sql "CREATE FUNCTION tidset_attach_and_check(bigint, bigint, int) RETURNS bigint LANGUAGE C AS '$FOLDER/build/tidset_server'"
}

psql=("$BINDIR/psql" -qXAt -v ON_ERROR_STOP=1)
sql() { "${psql[@]}" -c "$1"; }

# Shapes in local memory; then in an area, with another session that attaches.
test_server() {
	local shape limit full
	for shape in 0 1 2 3 4 5 6 7 8; do
		sql "SELECT tidset_local_check($shape)" >/dev/null
		"${psql[@]}" <<-SQL >>"$FOLDER/attached"
			SELECT shared[1] AS area, shared[2] AS handle FROM tidset_share($shape) shared \gset
			\set command '${psql[@]} -c "SELECT tidset_attach_and_check(' :area ',' :handle ',$shape)"'
			\setenv COMMAND :command
			\! eval "\$COMMAND"
		SQL
	done
	[[ $(grep -cE '^[1-9][0-9]+$' "$FOLDER/attached") == 9 ]] || {
		cat "$FOLDER/attached"
		exit 1
	}
	# the area holds the limit, and most of it is of use
	for limit in 65536 262144 1048576 4194304 67108864 100000000; do
		full=$(sql "SELECT r FROM tidset_shared_limit($limit) r")
		echo "limit $limit: area, set, blocks $full"
		[[ $(sql "SELECT r[1] <= $limit AND r[2] <= $limit AND r[2] >= $limit * CASE WHEN $limit < 1000000 THEN 0.2 ELSE 0.5 END
			AND r[3] > 100 FROM (SELECT '$full'::bigint[] r) x") == t ]] || exit 1
	done
	echo "ok tidset in the server: 9 shapes, local and shared"
}

bench() {
	local lookups=${1:-5000000} rounds=${2:-5} shape random
	start_load "$rounds"
	for random in false true; do
		[[ $random == true ]] && echo "random order" || echo "index order"
		for shape in ${ONLY:-0 1 2 3 4 5 6 7 8}; do
			sql "SELECT format('shape %s: TIDs %8s  bytes/TID: tidset %6s TidStore %6s array %6s  ns/lookup: tidset %6s TidStore %6s array %6s batch %6s  x TidStore %5s  x array %5s',
				$shape + 1, r[1], (r[2] / r[1])::numeric(10,3), (r[3] / r[1])::numeric(10,3), (r[4] / r[1])::numeric(10,3),
				r[5]::numeric(10,2), r[6]::numeric(10,2), r[7]::numeric(10,2), r[8]::numeric(10,2),
				r[9]::numeric(10,2), r[10]::numeric(10,2))
				FROM (SELECT tidset_compare($shape, $random, $lookups, $rounds) r) x"
		done
	done
}

queries() {
	local query sorted rounds=${1:-15}
	start_load "$rounds"
	for sorted in true false; do
		for query in ${ONLY:-0 1 2 3}; do
			sql "SELECT format('query %s %-8s  bytes: tidset %9s radix tree %9s  search ms: %5s %5s  x radix tree %5s  load ms: %5s %5s',
				$query + 1, CASE WHEN $sorted THEN 'sorted' ELSE 'shuffled' END, r[1], r[2], r[3]::int, r[4]::int,
				r[7]::numeric(10,2), r[5]::int, r[6]::int)
				FROM (SELECT tidset_query($query, $sorted, $rounds) r) x"
		done
	done
}

case ${1:-test} in
test)
	start
	test_server
	;;
bench)
	start
	bench "${@:2}"
	;;
queries)
	start
	queries "${@:2}"
	;;
*)
	echo "run.sh test | queries [rounds] | bench [lookups [rounds]]" >&2
	exit 2
	;;
esac
