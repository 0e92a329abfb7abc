#!/usr/bin/env bash
# Build, try, test and measure pg_inplace on a Debian 12 machine: ./run.sh help
#
# Every server started here is a throwaway one: data and socket lie in a private
# folder below /tmp, it listens on no TCP port, no other cluster is touched.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
STATE=$ROOT/.run                # git-ignored: logs, reports, the psql cluster's address
LOGS=$STATE/logs
LIMIT=1200                      # seconds after which a suite, or a file of tap, is given up
PYTHON=${PYTHON:-/usr/bin/python3}
FOLDER=                         # the folder of the cluster in use
GROUP=                          # the process group of what apart runs
PASSED=0
FAILED=0
EXTENSION_PACKAGES=(postgresql-plperl-15 postgresql-plpython3-15 postgresql-15-{cron,pglogical,repack,partman,pgaudit,rum,dirtyread,pgq3,periods}
	postgresql-15-{repmgr,orafce,hll,hypopg,postgis-3,postgis-3-scripts})

usage() {
	cat <<'HELP'
./run.sh demo [options]     heap against inplace side by side: a table and an HTML report, under 5 minutes
./run.sh bench [options]    the full benchmark against its bars, about an hour (--help lists the options)
./run.sh test [--full] [suite | suite/name ...]
                            the tests; suites: regress isolation tap diff core tidset walpack, and with --full or by name
                            extensions; --full takes longer and looks deeper;
                            INPLACE_SEED=n chooses other random tests
./run.sh psql [arguments]   psql on a throwaway cluster that has the extension; it stays up until "stop"
./run.sh stop               stops and deletes that cluster
./run.sh help               this text

What is missing is installed with apt (through sudo unless you are root).
PG_CONFIG=/path/to/pg_config ./run.sh ... takes another PostgreSQL than Debian's 15.
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

# Packages for PostgreSQL itself are left alone where PG_CONFIG names another one.
need_packages() {
	local wanted=(build-essential "$@") missing=() package
	[[ -n ${PG_CONFIG:-} ]] || wanted+=(postgresql-15 postgresql-server-dev-15)
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

build() {
	PG_CONFIG=${PG_CONFIG:-/usr/lib/postgresql/15/bin/pg_config}
	[[ -x $PG_CONFIG ]] || die "no $PG_CONFIG: set PG_CONFIG to the pg_config of your PostgreSQL"
	BINDIR=$("$PG_CONFIG" --bindir)
	PGXS_TEST=$("$PG_CONFIG" --pkglibdir)/pgxs/src/test
	local make=(make -C "$ROOT" -j"$(nproc)" PG_CONFIG="$PG_CONFIG")
	local target
	target="$PG_CONFIG $("$PG_CONFIG" --version)"
	say "Building for $("$PG_CONFIG" --version)"
	if [[ $(cat "$STATE/built-for" 2>/dev/null) != "$target" ]]; then
		logged clean "${make[@]}" clean
		echo "$target" >"$STATE/built-for"
	fi
	logged build "${make[@]}"
	if [[ -w $("$PG_CONFIG" --pkglibdir) ]]; then
		logged install "${make[@]}" install
	else
		logged install as_root "${make[@]}" install
	fi
}

# ---- clusters --------------------------------------------------------------

# The server and its tests refuse to run as root: root hands them to "postgres".
server_user() { id -un postgres 2>/dev/null || echo nobody; }

as_server() (
	cd "$FOLDER"
	((EUID == 0)) || exec "$@"
	user=$(server_user)
	HOME=$FOLDER exec setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups -- "$@"
)

pg_ctl() { as_server "$BINDIR/pg_ctl" -s "$@" >/dev/null </dev/null; }

# new_cluster [initdb options]: makes and starts one in a new FOLDER; more settings come on stdin.
new_cluster() {
	FOLDER=$(mktemp -d /tmp/pg_inplace.XXXXXX)
	trap delete_cluster EXIT
	trap 'end_group; kill $(jobs -rp) 2>/dev/null; wait; exit 130' INT TERM
	((EUID != 0)) || chown "$(server_user)" "$FOLDER"
	logged initdb as_server "$BINDIR/initdb" -D "$FOLDER/data" -U postgres -A trust -N \
		--no-locale -E UTF8 "$@"
	cat - >>"$FOLDER/data/postgresql.conf" <<-CONF
		shared_preload_libraries = 'inplace'
		listen_addresses = ''
		unix_socket_directories = '$FOLDER'
		$(cat)
	CONF
	start_cluster
	"$BINDIR/psql" -qX -v ON_ERROR_STOP=1 -c 'CREATE EXTENSION inplace'
}

start_cluster() {
	unset PGDATA PGHOSTADDR PGOPTIONS PGPASSFILE PGPASSWORD PGSERVICE PGSSLMODE
	export PGHOST=$FOLDER PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
	pg_ctl -D "$FOLDER/data" status || pg_ctl -D "$FOLDER/data" -l "$FOLDER/server.log" -w start || {
		tail -n 20 "$FOLDER/server.log" >&2
		die "the server did not start"
	}
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

# Also servers that an interrupted test has left in the folder.
delete_cluster() {
	local file
	while IFS= read -r file; do
		[[ $(readlink "/proc/$(head -n 1 "$file")/cwd") != "${file%/*}" ]] ||
			pg_ctl -D "${file%/*}" -m immediate stop || true
	done < <(find "$FOLDER" -name postmaster.pid)
	rm -rf "$FOLDER"
}

# ---- psql, stop ------------------------------------------------------------

known_cluster() {
	[[ -e $STATE/cluster ]] || return
	{ read -r FOLDER && read -r BINDIR; } <"$STATE/cluster"
	[[ $FOLDER == /tmp/pg_inplace.* && -d $FOLDER/data ]]
}

cmd_psql() {
	if known_cluster; then
		start_cluster
	else
		need_packages
		build
		new_cluster </dev/null
		trap - EXIT
		printf '%s\n' "$FOLDER" "$BINDIR" >"$STATE/cluster"
		say 'Try: CREATE TABLE t (id int PRIMARY KEY, n int) USING inplace;'
		say '"./run.sh stop" stops and deletes this cluster'
	fi
	exec "$BINDIR/psql" "$@"
}

cmd_stop() {
	known_cluster || { say "No cluster to stop"; return; }
	delete_cluster
	rm -f "$STATE/cluster"
	say "Stopped and deleted $FOLDER"
}

# ---- demo, bench -----------------------------------------------------------

# measure SCRIPT [options]: runs a program of bench/ on a cluster set up for it.
measure() {
	local script=$1
	shift
	need_packages python3 python3-psycopg2 python3-matplotlib
	build
	say "Starting a cluster"
	new_cluster <"$ROOT/bench/postgresql.conf"
	export PATH=$BINDIR:$PATH
	apart "$PYTHON" "$ROOT/bench/$script" --out "$STATE" "$@"
}

# ---- test ------------------------------------------------------------------

# result NAME ok|... REMARK: counts and prints one test.
result() {
	if [[ $2 == ok ]]; then
		PASSED=$((PASSED + 1))
		printf 'ok    %-40s %s\n' "$1" "$3"
	else
		FAILED=$((FAILED + 1))
		printf 'FAIL  %-40s %s\n' "$1" "$3"
	fi
}

# show FILE LINES: the end of a log, for those who only see this output.
show() {
	[[ -s $1 ]] || return 0
	printf -- '---- %s\n' "$1"
	tail -n "$2" "$1"
	printf -- '----\n'
}

# Understands pg_regress's own lines of 15 ("test foo ... ok") and TAP's, which it prints from 16 on.
regress_line() {
	local old='^(test|    ) *([^ ]+) +\.\.\. (ok|FAILED|failed) *(.*)$'
	local tap='^(not ok|ok) [0-9]+ +[-+] ([^ ]+) *(.*)$'
	if [[ $2 =~ $old ]]; then
		result "$1/${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}" "${BASH_REMATCH[4]}"
	elif [[ $2 =~ $tap ]]; then
		result "$1/${BASH_REMATCH[2]}" "${BASH_REMATCH[1]}" "${BASH_REMATCH[3]}"
	fi
}

# regress_suite SUITE TOOL [test ...]
regress_suite() {
	local suite=$1 tool=$2 before=$FAILED line status=0
	shift 2
	local folder=$FOLDER/test/$suite
	local options=(--bindir="$BINDIR" --dlpath="$("$PG_CONFIG" --pkglibdir)" --dbname="$suite"
		--host="$FOLDER" --port=5432 --user=postgres --inputdir="$folder" --outputdir="$folder"
		--load-extension=inplace)
	(($#)) || options+=(--schedule="$folder/schedule")
	while IFS= read -r line; do
		regress_line "$suite" "$line"
	done < <(as_server timeout "$LIMIT" "$tool" "${options[@]}" "$@" 2>&1 | tee "$LOGS/$suite.log")
	wait $! || status=$?
	if ((status != 0 && FAILED == before)); then
		result "$suite" FAIL "broke off"
		show "$LOGS/$suite.log" 40
	fi
	((FAILED > before)) || return 0
	cp "$folder/regression.diffs" "$LOGS/$suite.diffs" 2>/dev/null || true
	show "$LOGS/$suite.diffs" 400
}

suite_regress() { regress_suite regress "$PGXS_TEST/regress/pg_regress" "$@"; }
suite_isolation() { regress_suite isolation "$PGXS_TEST/isolation/pg_isolation_regress" "$@"; }

# One file; its tests count one by one, and breaking off counts as one that failed.  Last line: passed, failed.
tap_file() {
	local name log folder good bad skipped status=0
	name=$(basename "$1" .pl)
	log=$LOGS/tap_$name.log
	folder=$FOLDER/tap/$name
	as_server mkdir -p "$folder"
	apart as_server env TMPDIR="$FOLDER" TESTDIR="$folder" TESTDATADIR="$folder/tmp_check" \
		TESTLOGDIR="$folder/tmp_check/log" PATH="$BINDIR:$PATH" PGPORT=65432 \
		PG_REGRESS="$PGXS_TEST/regress/pg_regress" top_builddir="$FOLDER/tap" \
		PERL5LIB="$PGXS_TEST/perl" PG_CONFIG="$PG_CONFIG" \
		timeout --foreground "$LIMIT" prove -v "$1" >"$log" 2>&1 || status=$?
	good=$(grep -c '^ok ' "$log") || true
	bad=$(grep '^not ok ' "$log" | grep -vc '# TODO') || true
	((status == 0 || bad > 0)) || bad=1
	if ((bad == 0)); then
		skipped=$(sed -nE 's/^(1\.\.0|ok [0-9]+) # (SKIP|skip) //p' "$log" | sort -u | paste -sd ';')
		printf 'ok    %-40s %s\n%s %s\n' "tap/$name" "$good tests${skipped:+, skipped: $skipped}" "$good" 0
		rm -rf "$folder"
		return
	fi
	printf 'FAIL  %-40s %s\n' "tap/$name" "$bad of $((good + bad)) tests"
	grep -A6 '^not ok ' "$log" | head -n 40 || true
	show "$log" 60
	rm -rf "$LOGS/tap_$name"
	cp -r "$folder/tmp_check/log" "$LOGS/tap_$name" 2>/dev/null || true
	log=$LOGS/tap_$name/regress_log_$name
	grep -E 'psql:.*(ERROR|FATAL|PANIC)' "$log" | tail -n 10 || true
	show "$log" 40
	printf '%s %s\n' "$good" "$bad"
}

# at_a_time N COMMAND ITEM...: COMMAND ITEM for each, N of them at a time.  Each prints what it has to say, and
# at last how many tests have passed and failed.
at_a_time() {
	local n=$1 command=$2 item good bad
	shift 2
	for item in "$@"; do
		while (($(jobs -rp | wc -l) >= n)); do wait -n || true; done
		(
			trap 'end_group; exit 130' TERM
			trap - EXIT
			"$command" "$item" >"$FOLDER/${item##*/}.out"
			head -n -1 "$FOLDER/${item##*/}.out"
		) &
	done
	wait
	for item in "$@"; do
		read -r good bad < <(tail -n 1 "$FOLDER/${item##*/}.out")
		PASSED=$((PASSED + good)) FAILED=$((FAILED + bad))
	done
}

# The files mostly wait, so as many run at a time as there are processors.
suite_tap() {
	local file files=()
	for file in "$FOLDER"/test/t/*.pl; do
		if (($# == 0)) || [[ " $* " == *" $(basename "$file" .pl) "* ]]; then files+=("$file"); fi
	done
	(($# == 0 || $# == ${#files[@]})) || die "not all of these are in test/t: $*"
	at_a_time "$(nproc)" tap_file "${files[@]}"
}

# In a cluster of its own: a transaction in another database may have heap's CLUSTER look for TOAST that is gone.
# autovacuum would lock the tables of one side only; the testers have VACUUM among their statements.
diff_seed() {
	local log=$LOGS/diff_$1.log statements=50000 data=$FOLDER/diff_$1 status=0 skip=
	# an update that is not HOT has heap check deferrable constraints again, and wait: once in millions of statements
	((FULL == 0)) || statements=640000 skip=deferred
	logged "initdb_$1" as_server "$BINDIR/initdb" -D "$data" -U postgres -A trust -N --no-locale -E UTF8
	sed "s,^unix_socket_directories = .*,unix_socket_directories = '$data'," "$FOLDER/data/postgresql.conf" >"$data/postgresql.conf"
	echo 'autovacuum = off' >>"$data/postgresql.conf"
	pg_ctl -D "$data" -l "$FOLDER/server.log" -w start
	apart timeout --foreground "$LIMIT" "$PYTHON" "$ROOT/test/diff/diff.py" --socket "$data" --seed "$1" \
		--statements "$statements" --skip "$skip" >"$log" 2>&1 || status=1
	if ((status == 0)); then
		printf 'ok    %-40s %s\n1 0\n' "diff/seed $1" "$statements statements"
	else
		printf 'FAIL  %-40s %s\n' "diff/seed $1" "$statements statements"
		show "$log" 80
		printf '0 1\n'
	fi
	pg_ctl -D "$data" -m immediate stop
	rm -rf "$data"
}

# Testers mostly wait for locks that they do not get: several run at a time.
suite_diff() {
	local seeds=4
	((FULL == 0)) || seeds=8
	at_a_time 8 diff_seed $(seq "$INPLACE_SEED" $((INPLACE_SEED + seeds - 1)))
}

# PostgreSQL's own suites.  core.py prints a line for each test, and indented below it what differs.
suite_core() {
	if "$PYTHON" -B "$ROOT/test/core/selftest.py" >"$LOGS/core_selftest.log" 2>&1; then
		result core/selftest ok ""
	else
		result core/selftest FAIL "the comparison does not do what it should"
		show "$LOGS/core_selftest.log" 40
	fi
	core_suites core "$@"
}

# What other extensions do when default_table_access_method is inplace: contrib's suites, and Debian's packages.
suite_extensions() {
	(($# > 0)) || [[ " ${suites[*]} " == *" tap "* ]] || suite_tap 265_repack 270_packages
	(($# > 0)) || set -- ""
	core_suites extensions "${@/#/contrib/}"
}

# core_suites SUITE [names for core.py]
core_suites() {
	local suite=$1 folder=$FOLDER/$1 version source line
	shift
	local options=(--pg-config "$PG_CONFIG" --source "$folder/source" --folder "$folder/run" --heap "$folder/heap"
		--report "$folder/report")
	((FULL == 0)) || options+=(--full)
	version=$("$PG_CONFIG" --version | sed -E 's/^PostgreSQL ([0-9.]+).*/\1/')
	source=$("$ROOT/test/core/fetch_source.sh" "$version" "$STATE/source" 2>"$LOGS/core_source.log") || {
		result "$suite" FAIL "no source of PostgreSQL"
		show "$LOGS/core_source.log" 20
		return
	}
	as_server mkdir -p "$folder/source/src" "$folder/run"
	cp -r "$source/src/test" "$folder/source/src"
	cp -r "$source/contrib" "$folder/source"
	mkdir -p "$STATE/core"
	cp -r "$STATE/core" "$folder/heap"
	((EUID != 0)) || chown -R "$(server_user)" "$folder"
	while IFS= read -r line; do
		core_line "$suite" "$line"
	done < <(as_server timeout "$((LIMIT * 3))" "$PYTHON" "$FOLDER/test/core/core.py" "${options[@]}" "$@" 2>&1 |
		tee "$LOGS/$suite.log")
	wait $! || ((FAILED > 0)) || result "$suite" FAIL "broke off"
	cp -r "$folder/heap/." "$STATE/core"
	cp "$folder/report" "$LOGS/$suite.report" 2>/dev/null || true
}

core_line() {
	local pattern='^(ok|FAIL) ([^ ]+) ?(.*)$'
	if [[ $2 =~ $pattern ]]; then
		result "$1/${BASH_REMATCH[2]}" "${BASH_REMATCH[1]}" "${BASH_REMATCH[3]}"
	else
		printf '%s\n' "$2"
	fi
}

# The library outside of a server: vector code and its scalar twin, sanitizers, valgrind; then in one.
suite_tidset() {
	local step options=(OUT="$STATE/tidset" SEED="$INPLACE_SEED" ROUNDS=16)
	((FULL == 0)) || options=(OUT="$STATE/tidset" SEED="$INPLACE_SEED" ROUNDS=400 FULL=-f)
	for step in check-scalar check-asan check-valgrind; do
		tidset_step "$step" make -C "$ROOT/tidset" "${options[@]}" "$step"
	done
	tidset_step server env PG_CONFIG="$PG_CONFIG" "$ROOT/tidset/test/server/run.sh" test
}

tidset_step() {
	local log=$LOGS/tidset_$1.log
	if apart timeout --foreground "$LIMIT" "${@:2}" >"$log" 2>&1; then
		result "tidset/${1#check-}" ok ""
	else
		result "tidset/${1#check-}" FAIL "seed $INPLACE_SEED"
		show "$log" 40
	fi
}

# Archiving; the cluster's own WAL, of all the suites before, is packed and unpacked too.
suite_walpack() {
	local folder=$FOLDER/walpack line name status=0 before=$FAILED
	local options=(--bindir "$BINDIR" --seed "$INPLACE_SEED" --work "$folder/work" --segments "$FOLDER/data/pg_wal")
	local pattern='^(ok|FAIL) +([^ ]+) +(.*)$'
	((FULL == 0)) || options+=(--full)
	for name; do options+=(--only "$name"); done
	logged walpack_build make -C "$ROOT/walpack" PG_CONFIG="$PG_CONFIG" test-programs
	cp -r "$ROOT/walpack" "$folder"
	((EUID != 0)) || chown -R "$(server_user)" "$folder"
	while IFS= read -r line; do
		if [[ $line =~ $pattern ]]; then
			result "walpack/${BASH_REMATCH[2]}" "${BASH_REMATCH[1]}" "${BASH_REMATCH[3]}"
		else
			printf '%s\n' "$line"
		fi
	done < <(as_server timeout "$LIMIT" "$PYTHON" "$folder/test/test_walpack.py" "${options[@]}" 2>&1 |
		tee "$LOGS/walpack.log")
	wait $! || status=$?
	((status == 0 || FAILED > before)) || result walpack FAIL "broke off"
}

# A test may pass while a server process dies behind its back.
suite_server_log() {
	local bad
	cp "$FOLDER/server.log" "$LOGS/server.log"
	bad=$(grep -E 'PANIC|TRAP:|was terminated by signal' "$LOGS/server.log") || true
	if [[ -z $bad ]]; then
		result "server log" ok "no crash"
	else
		result "server log" FAIL "$bad"
		show "$LOGS/server.log" 60
	fi
}

cmd_test() {
	local arg suite suites=() names packages=(libipc-run-perl libzstd-dev python3 python3-psycopg2)
	FULL=0
	for arg; do
		case $arg in
		--full) FULL=1 ;;
		regress | isolation | tap | diff | core | tidset | walpack | extensions) suites+=("$arg") ;;
		regress/* | isolation/* | tap/* | core/* | walpack/* | extensions/*) suites+=("$arg") ;;
		*) die "no suite \"$arg\": regress, isolation, tap, diff, core, tidset, walpack or extensions, or one test of it as in regress/NAME" ;;
		esac
	done
	if ((${#suites[@]} == 0)); then
		suites=(regress isolation tap diff core tidset walpack)
		((FULL == 0)) || suites+=(extensions)
	fi
	if [[ " ${suites[*]} " =~ \ extensions|270_packages ]]; then
		export INPLACE_PACKAGES=1
		[[ -n ${PG_CONFIG:-} ]] || packages+=("${EXTENSION_PACKAGES[@]}")
	fi
	need_packages "${packages[@]}"
	build
	say "Starting a cluster"
	new_cluster --data-checksums < <(test_settings)
	cp -r "$ROOT/test" "$FOLDER/test"
	((EUID != 0)) || chown -R "$(server_user)" "$FOLDER/test"
	export INPLACE_SEED=${INPLACE_SEED:-1}
	((FULL == 0)) || LIMIT=$((LIMIT * 5))
	((FULL == 0)) || export INPLACE_CRASH_ROUNDS=${INPLACE_CRASH_ROUNDS:-40}
	for suite in regress isolation tap diff core tidset walpack extensions; do
		mapfile -t names < <(printf '%s\n' "${suites[@]}" | sed -n "s,^$suite/,,p")
		if ((${#names[@]})) || [[ " ${suites[*]} " == *" $suite "* ]]; then
			say "Suite $suite"
			"suite_$suite" ${names[@]+"${names[@]}"}
		fi
	done
	suite_server_log
	((FAILED == 0)) || say "Logs: $LOGS"
	echo "$PASSED passed, $FAILED failed"
	((FAILED == 0))
}

test_settings() {
	cat <<-CONF
		fsync = off
		max_prepared_transactions = 10
		log_line_prefix = '%m [%p] %a '
	CONF
}

# ----------------------------------------------------------------------------

mkdir -p "$LOGS"
verb=${1:-help}
shift || true
case $verb in
demo) measure demo.py "$@" ;;
bench) measure bench.py "$@" ;;
test) cmd_test "$@" ;;
psql) cmd_psql "$@" ;;
stop) cmd_stop ;;
help | -h | --help) usage ;;
*) die "no verb \"$verb\"; ./run.sh help lists them" ;;
esac
