#!/usr/bin/env bash
# server_test.sh: is a server that was built kept, and one that was broken off not used?  With a source that takes no time.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
ROOT=$WORK
LOGS=$WORK
say() { echo "$*" >>"$WORK/said"; }
die() { echo "$*" >&2; exit 1; }
logged() { "${@:2}" >"$LOGS/$1.log" 2>&1 || die "failed: $1"; }
source "$HERE/server.sh"
CACHE=$WORK/cache
mkdir -p "$CACHE" "$WORK/test" "$WORK/source/postgresql-17.3"

cat >"$WORK/test/fetch_source.sh" <<END
#!/bin/sh
echo "$WORK/source/postgresql-\$1.3"
END
# configure makes a makefile that "installs" a postgres that is a script
cat >"$WORK/source/postgresql-17.3/configure" <<'END'
#!/bin/sh
[ ! -e "$0.broken" ] || exit 1
prefix=$(printf '%s\n' "$@" | sed -n 's/^--prefix=//p')
printf 'world-bin:\n\tsleep 1\ninstall-world-bin:\n\tmkdir -p $(DESTDIR)%s/bin\n' "$prefix" >Makefile
printf '\tprintf "#!/bin/sh\\necho fake\\n" >$(DESTDIR)%s/bin/postgres; chmod 755 $(DESTDIR)%s/bin/postgres\n' "$prefix" "$prefix" >>Makefile
END
chmod 755 "$WORK/test/fetch_source.sh" "$WORK/source/postgresql-17.3/configure"

expect() { [[ $2 == "$3" ]] || die "$1: \"$2\" instead of \"$3\""; }

unset PG_CONFIG
server_options --pg 17 something
expect 'the choice' "$PG$CASSERT $SERVER ${ARGUMENTS[*]}" '17 source something'

touch "$WORK/source/postgresql-17.3/configure.broken"
! (build_server) 2>/dev/null || die 'a build that fails passes for one'
expect 'what a failure leaves' "$(built_server || true)$(ls -A "$CACHE")" 17.lock
rm "$WORK/source/postgresql-17.3/configure.broken"

# as kill -9 would leave it
mkdir -p "$CACHE/.17.killed/root"
build_server &
sleep 0.2
build_server
wait
expect 'two runs at once' "$(grep -c '^Built' "$WORK/said") $(grep -c '^Waiting' "$WORK/said")" '1 1'
expect 'the folder' "$(built_server)" "$CACHE/17.3"
expect 'nothing else' "$(ls -A "$CACHE" | paste -sd ' ')" '17.3 17.lock'

CASSERT=-cassert
expect 'a server without assertions' "$(built_server || echo none)" none
CASSERT=
echo --with-something >>"$CACHE/17.3/built-with"
expect 'a server of another configuration' "$(built_server || echo none)" none
rm "$CACHE/17.3/built-with"
expect 'a folder that is not whole' "$(built_server || echo none)" none
echo ok
