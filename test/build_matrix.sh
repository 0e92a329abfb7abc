#!/usr/bin/env bash
# Builds all parts for several servers, with gcc and clang, at -O0 and -O2, warnings being errors:
#
#     [COMPILERS='gcc clang'] [LEVELS='-O0 -O2'] [PARTS='inplace walpack'] build_matrix.sh PG_CONFIG...
#
# The last line counts.  In copies: the builds of the tree are left alone.
set -euo pipefail
(($#)) || { sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 1; }
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d /tmp/build_matrix.XXXXXX)
trap 'rm -rf "$work"' EXIT
good=0 bad=0
for config; do
	server=$("$config" --version | sed 's/^PostgreSQL //')
	! grep -q '^#define USE_ASSERT_CHECKING 1' "$("$config" --includedir-server)/pg_config.h" || server+=' asserts'
	for compiler in ${COMPILERS:-gcc clang}; do
		command -v "$compiler" >/dev/null || { echo "no $compiler: left out"; continue; }
		for level in ${LEVELS:--O0 -O2}; do
			for part in ${PARTS:-inplace pagedelta pbtree tidset walpack}; do
				name="$server $compiler $level $part"
				rm -rf "$work"/*
				cp -r "$root"/{common,pagedelta,pbtree,tidset,inplace,walpack} "$work"
				# of what the tree has built already, a library that is left would count as built: PGXS does not miss its objects
				make -C "$work/$part" PG_CONFIG="$config" clean >"$work/log" 2>&1
				# the server's own flags are for the compiler that it was built with; tidset alone needs no server
				flags=(CC="$compiler -Werror" CFLAGS="$level -g")
				[[ $part == tidset ]] || flags=(PG_CONFIG="$config" CC="$compiler" with_llvm=no
					CFLAGS="$level -g -Wall -Werror -Wno-ignored-attributes -fno-strict-aliasing -fwrapv")
				if make -C "$work/$part" -j"$(nproc)" "${flags[@]}" all >"$work/log" 2>&1; then
					good=$((good + 1))
					echo "ok    $name"
				else
					bad=$((bad + 1))
					echo "FAIL  $name"
					grep -E 'error:|warning:|undefined|cannot find|No rule' "$work/log" | head -n 10 || tail -n 5 "$work/log"
				fi
			done
		done
	done
done
echo "$good built without warnings, $bad not"
((bad == 0))
