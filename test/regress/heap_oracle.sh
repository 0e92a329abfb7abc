#!/usr/bin/env bash
# Writes the expected files of test/regress and test/isolation with heap: it runs the suites on a throwaway copy of the
# installed server, whose extension "inplace" only gives heap's own handler a second name.  So nobody writes down by hand
# what a query returns.  Usage: heap_oracle.sh regress|isolation [test ...]; PG_CONFIG chooses the server.
set -euo pipefail
suite=$1
shift
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../$suite" && pwd)
PG_CONFIG=${PG_CONFIG:-/usr/lib/postgresql/15/bin/pg_config}
BINDIR=$("$PG_CONFIG" --bindir)
SHAREDIR=$("$PG_CONFIG" --sharedir)
PKGLIBDIR=$("$PG_CONFIG" --pkglibdir)
source "$HERE/../cluster.sh"
new_folder /tmp/heap_oracle
trap delete_folder EXIT

# A server finds its files relative to its executable, so a copy has its own extensions.
mkdir -p "$FOLDER$BINDIR" "$FOLDER$SHAREDIR" "$FOLDER$PKGLIBDIR"
cp -r "$BINDIR/." "$FOLDER$BINDIR"
cp -rL "$SHAREDIR/." "$FOLDER$SHAREDIR"
cp -r "$PKGLIBDIR/." "$FOLDER$PKGLIBDIR"
rm -f "$FOLDER$SHAREDIR"/extension/inplace--*.sql
printf "default_version = '1.0'\n" >"$FOLDER$SHAREDIR/extension/inplace.control"
echo 'CREATE ACCESS METHOD inplace TYPE TABLE HANDLER heap_tableam_handler;' >"$FOLDER$SHAREDIR/extension/inplace--1.0.sql"
cp -r "$HERE" "$FOLDER/suite"
give_server "$FOLDER"

BINDIR=$FOLDER$BINDIR
init_cluster "$FOLDER/data" <<<'
	fsync = off
	max_prepared_transactions = 10'
start_cluster "$FOLDER/data"
tool=$PKGLIBDIR/pgxs/src/test/$suite/pg_$([[ $suite == regress ]] || echo isolation_)regress
options=(--bindir="$BINDIR" --dlpath="$PKGLIBDIR" --dbname="$suite" --host="$FOLDER" --port=5432 --user=postgres
	--inputdir="$FOLDER/suite" --outputdir="$FOLDER/suite")
(($#)) || options+=(--schedule="$FOLDER/suite/schedule")
# missing expected files would stop the tool
for file in "$FOLDER"/suite/sql/*.sql "$FOLDER"/suite/specs/*.spec; do
	[[ ! -e $file ]] || as_server touch -a "$FOLDER/suite/expected/$(basename "${file%.*}").out"
done
as_server "$tool" "${options[@]}" "$@" || true
grep -hE 'PANIC|TRAP|terminated by signal' "$FOLDER/server.log" && exit 1
for result in "$FOLDER"/suite/results/*.out "$FOLDER"/suite/output_iso/results/*.out; do
	[[ -e $result ]] || continue
	# what only the real access method does has its own, hand-made expectation
	if ! head -n 1 "$result" | grep -q '^-- Not heap'; then cp "$result" "$HERE/expected/"; fi
done
