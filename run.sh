#!/usr/bin/env bash
# Build, try, test and measure pg_inplace on a Debian 12 machine: ./run.sh help
#
# Every server started here is a throwaway one: data and socket lie in a private
# folder below /tmp, it listens on no TCP port, no other cluster is touched.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
STATE=$ROOT/.run                # git-ignored: logs, reports, the psql cluster's address
LOGS=$STATE/logs
PYTHON=${PYTHON:-/usr/bin/python3}
FOLDER=                         # the folder of the cluster in use
GROUP=                          # the process group of what apart runs
PART_MAKE=()                    # make, of a part for the server in use

source "$ROOT/test/server.sh"
source "$ROOT/test/cluster.sh"
source "$ROOT/test/suites.sh"

usage() {
	cat <<HELP
./run.sh demo [options]     heap against inplace side by side: a table and an HTML report, under 5 minutes
./run.sh bench [options]    the full benchmark against its bars, over an hour (--help lists the options)
./run.sh bench growth [options] [workload ...]
                            does a table grow, or become dear to read, where heap's does not? 87 workloads;
                            the suite growth has a few of them
./run.sh bench keys [options] [part ...]
                            do indexes stay near their size while keys change all the time? half an hour
./run.sh bench instructions [options] [row ...]
                            how many instructions statements take, by callgrind: heap, inplace, and a former run
./run.sh test [--all | --full] [--minutes=n] [suite | suite/name ...]
                            the tests, a quarter of an hour of them; --all takes all suites, an hour: $SUITES;
                            --full takes hours, and looks deeper; without it $LONG run only by name;
                            INPLACE_SEED=n chooses other random tests; what would start after
                            n minutes is left out
./run.sh psql [arguments]   psql on a throwaway cluster that has the extension; it stays up until "stop"
./run.sh stop               stops and deletes that cluster
./run.sh help               this text

demo, bench, test and psql take the server from Debian's packages of PostgreSQL 15, or
  --pg 15|16|17|18|19       that version: but for 15 it is built from Debian's or Ubuntu's source package, which takes some
                            10 minutes on 2 processors, and kept in $CACHE (removing
                            a folder there has the newest minor version built next time); of 19 Debian's packages for
                            experimental are taken, and kept there, as long as there is no source package
  --cassert                 a server with assertions, likewise built and kept; with packages of 19 the extension only has them
  PG_CONFIG=/path/to/pg_config ./run.sh ...
                            a server of yours
What is missing is installed with apt (through sudo unless you are root).
HELP
}

say() { printf '==> %s\n' "$*" >&2; }
die() { printf 'run.sh: %s\n' "$*" >&2; exit 1; }

# ---- packages, build -------------------------------------------------------

as_root() {
	if ((EUID == 0)); then "$@"; return; fi
	command -v sudo >/dev/null || die "this step needs root: run it as root, or install sudo ($*)"
	sudo "$@"
}

# logged NAME COMMAND...: its output goes to a log, of which a failure shows the end.
logged() {
	local log=$LOGS/$1.log
	shift
	"$@" >"$log" 2>&1 </dev/null && return
	tail -n 40 "$log" >&2
	die "failed: $* (whole output: $log)"
}

# Those that the server needs are among them.
need_packages() {
	local wanted=(build-essential "$@" $(server_packages)) missing=() package
	command -v apt-get >/dev/null || die "no apt-get here; install the equivalents of: ${wanted[*]}"
	for package in "${wanted[@]}"; do
		[[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
			missing+=("$package")
	done
	((${#missing[@]} == 0)) || install_packages "${missing[@]}"
}

# Installing Debian's server would make and start a cluster "main"; nobody asked for one.
install_packages() {
	local folder=/etc/postgresql-common/createcluster.d
	local setting=$folder/pg_inplace-no-main-cluster.conf
	say "Installing $*"
	logged apt-update as_root apt-get -q update
	if [[ " $* " == *" postgresql-15 "* ]]; then
		as_root mkdir -p "$folder"
		as_root tee "$setting" >/dev/null <<<'create_main_cluster = false'
		trap 'as_root rm -f '"$setting" EXIT
	fi
	logged apt-install as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get -q install -y --no-install-recommends "$@"
	as_root rm -f "$setting"
	trap - EXIT
}

# Parts that were built for another server, or for one of another configuration, are built anew.
build() {
	choose_server
	local target
	PART_MAKE=(make -j"$(nproc)" PG_CONFIG="$PG_CONFIG" ${ASSERTS:+COPT="$ASSERTS"})
	target="$PG_CONFIG $("$PG_CONFIG" --version) $(sum <"$("$PG_CONFIG" --includedir-server)/pg_config.h") $(
		sum <"$(dirname "$("$PG_CONFIG" --pgxs)")/../Makefile.global") $ASSERTS"
	say "Building for $("$PG_CONFIG" --version)${CASSERT:+ with assertions}"
	if [[ $(cat "$STATE/built-for" 2>/dev/null) != "$target" ]]; then
		logged clean make -C "$ROOT" clean PG_CONFIG="$PG_CONFIG"
		echo "$target" >"$STATE/built-for"
	fi
	logged build "${PART_MAKE[@]}" -C "$ROOT/inplace"
	if [[ -w $("$PG_CONFIG" --pkglibdir) ]]; then
		logged install "${PART_MAKE[@]}" -C "$ROOT/inplace" install
	else
		logged install as_root "${PART_MAKE[@]}" -C "$ROOT/inplace" install
	fi
}

# ---- clusters --------------------------------------------------------------

# new_cluster [initdb options]: makes and starts one in a new FOLDER; more settings come on stdin.
new_cluster() {
	new_folder /tmp/pg_inplace
	trap delete_folder EXIT
	trap 'end_group; kill $(jobs -rp) 2>/dev/null; wait; exit 130' INT TERM
	init_cluster "$FOLDER/data" "$@" < <(
		echo "shared_preload_libraries = 'inplace'"
		cat
	)
	start_cluster "$FOLDER/data"
	connect_here
	"$BINDIR/psql" -qX -v ON_ERROR_STOP=1 -c 'CREATE EXTENSION inplace'
}

# apart COMMAND...: in a process group of its own and in the background, so that a signal to this
# script neither waits for its end nor leaves parts of it behind.
apart() {
	local status=0
	set -m
	"$@" </dev/null &
	set +m
	GROUP=$!
	wait "$GROUP" || status=$?
	end_group
	return "$status"
}

end_group() {
	[[ -z $GROUP ]] || kill -- "-$GROUP" 2>/dev/null || true
	GROUP=
}

# ---- psql, stop ------------------------------------------------------------

known_cluster() {
	[[ -e $STATE/cluster ]] || return
	{ read -r FOLDER && read -r BINDIR; } <"$STATE/cluster"
	[[ $FOLDER == /tmp/pg_inplace.* && -d $FOLDER/data ]]
}

# The cluster that is up is taken unless another server is asked for.
cmd_psql() {
	if known_cluster; then
		[[ -z $ASKED || $(tail -n 1 "$STATE/cluster") == "$ASKED" ]] ||
			die 'a cluster of another server is up: "./run.sh stop" it first'
		start_cluster "$FOLDER/data"
		connect_here
	else
		need_packages
		build
		new_cluster </dev/null
		trap - EXIT
		printf '%s\n' "$FOLDER" "$BINDIR" "${ASKED:-15}" >"$STATE/cluster"
		say 'Try: CREATE TABLE t (id int PRIMARY KEY, n int) USING inplace;'
		say '"./run.sh stop" stops and deletes this cluster'
	fi
	exec "$BINDIR/psql" "$@"
}

cmd_stop() {
	known_cluster || { say "No cluster to stop"; return; }
	delete_folder
	rm -f "$STATE/cluster"
	say "Stopped and deleted $FOLDER"
}

# ---- demo, bench -----------------------------------------------------------

# on_cluster SCRIPT [options]: runs a program of bench/ on a new cluster, whose settings come on stdin.
on_cluster() {
	say "Starting a cluster"
	new_cluster
	export PATH=$BINDIR:$PATH
	apart "$PYTHON" "$ROOT/bench/$1" --out "$STATE" "${@:2}"
}

# measure SCRIPT [options]: heap against inplace, in time and bytes.
measure() {
	need_packages python3 python3-psycopg2 python3-matplotlib
	build
	on_cluster "$@" <"$ROOT/bench/postgresql.conf"
}

# grow SCRIPT [options]: does a table, or an index, grow where heap's does not?
grow() {
	need_packages python3 python3-psycopg2
	build
	install_pbtree
	on_cluster "$@" <"$ROOT/bench/growth.conf"
}

# count_instructions [options]: it makes its own clusters, without a postmaster.
count_instructions() {
	need_packages python3 valgrind
	build
	install_pbtree
	"$PYTHON" "$ROOT/bench/instructions.py" --pg-config "$PG_CONFIG" --out "$STATE" "$@"
}

# ----------------------------------------------------------------------------

mkdir -p "$LOGS"
verb=${1:-help}
shift || true
server_options "$@"
set -- ${ARGUMENTS[@]+"${ARGUMENTS[@]}"}
case $verb in
demo) measure demo.py "$@" ;;
bench)
	case ${1:-} in
	growth | keys) grow "$1.py" "${@:2}" ;;
	instructions) count_instructions "${@:2}" ;;
	*) measure bench.py "$@" ;;
	esac
	;;
test) cmd_test "$@" ;;
psql) cmd_psql "$@" ;;
stop) cmd_stop ;;
help | -h | --help) usage ;;
*) die "no verb \"$verb\"; ./run.sh help lists them" ;;
esac
