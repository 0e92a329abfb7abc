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
WORK=$(mktemp -d /tmp/heap_oracle.XXXXXX)
user=$(id -un)
((EUID != 0)) || user=postgres
as_server() { if ((EUID == 0)); then (cd "$WORK" && setpriv --reuid "$user" --regid "$user" --init-groups -- "$@"); else "$@"; fi; }
finish() {
	[[ ! -e $WORK/data/postmaster.pid ]] || as_server "$WORK$BINDIR/pg_ctl" -s -D "$WORK/data" -m immediate stop || true
	rm -rf "$WORK"
}
trap finish EXIT

# A server finds its files relative to its executable, so a copy has its own extensions.
mkdir -p "$WORK$BINDIR" "$WORK$SHAREDIR" "$WORK$PKGLIBDIR"
cp -r "$BINDIR/." "$WORK$BINDIR"
cp -rL "$SHAREDIR/." "$WORK$SHAREDIR"
cp -r "$PKGLIBDIR/." "$WORK$PKGLIBDIR"
rm -f "$WORK$SHAREDIR"/extension/inplace--*.sql
printf "default_version = '1.0'\n" >"$WORK$SHAREDIR/extension/inplace.control"
echo 'CREATE ACCESS METHOD inplace TYPE TABLE HANDLER heap_tableam_handler;' >"$WORK$SHAREDIR/extension/inplace--1.0.sql"
cp -r "$HERE" "$WORK/suite"
((EUID != 0)) || chown -R "$user" "$WORK"

as_server "$WORK$BINDIR/initdb" -D "$WORK/data" -U postgres -A trust -N --no-locale -E UTF8 >/dev/null
cat >>"$WORK/data/postgresql.conf" <<-CONF
	listen_addresses = ''
	unix_socket_directories = '$WORK'
	fsync = off
	max_prepared_transactions = 10
CONF
as_server "$WORK$BINDIR/pg_ctl" -s -D "$WORK/data" -l "$WORK/server.log" -w start
tool=$PKGLIBDIR/pgxs/src/test/$suite/pg_$([[ $suite == regress ]] || echo isolation_)regress
options=(--bindir="$WORK$BINDIR" --dlpath="$PKGLIBDIR" --dbname="$suite" --host="$WORK" --port=5432 --user=postgres
	--inputdir="$WORK/suite" --outputdir="$WORK/suite")
(($#)) || options+=(--schedule="$WORK/suite/schedule")
# missing expected files would stop the tool
for file in "$WORK"/suite/sql/*.sql "$WORK"/suite/specs/*.spec; do
	[[ ! -e $file ]] || as_server touch -a "$WORK/suite/expected/$(basename "${file%.*}").out"
done
as_server "$tool" "${options[@]}" "$@" || true
grep -hE 'PANIC|TRAP|terminated by signal' "$WORK/server.log" && exit 1
for result in "$WORK"/suite/results/*.out "$WORK"/suite/output_iso/results/*.out; do
	[[ -e $result ]] || continue
	# what only the real access method does has its own, hand-made expectation
	if ! head -n 1 "$result" | grep -q '^-- Not heap'; then cp "$result" "$HERE/expected/"; fi
done
