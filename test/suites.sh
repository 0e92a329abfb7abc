# The tests: run.sh reads this file.  A suite NAME is a word of SUITES and a function suite_NAME, which gets the tests
# that are wanted as arguments, or none; it prints and counts them with "result".

SUITES="limits regress isolation tap diff core tidset walpack extensions"
CHOICE="regress isolation tap core walpack extensions"	# of which single tests can be named
LONG="extensions"								# run with --full, or by name
LIMIT=1200										# seconds of processor time, for a suite or a file of tap
IDLE=300										# seconds without any
# Core's own tools wait for at most so many seconds that pass.
export PG_TEST_TIMEOUT_DEFAULT=900 PGISOLATIONTIMEOUT=900 PGCTLTIMEOUT=900
PASSED=0
FAILED=0
# Debian's packages that the suite extensions tries; PostgreSQL's procedural languages are for contrib's suites
EXTENSION_PACKAGES=(postgresql-plperl-15 postgresql-plpython3-15
	postgresql-15-{cron,pglogical,repack,partman,pgaudit,rum,dirtyread,pgq3,periods,repmgr,orafce,hll,hypopg,postgis-3,postgis-3-scripts})

# ---- results ---------------------------------------------------------------

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

# limited FOLDER COMMAND...: the command, and how much time it has (see limited.py), as words in LIMITED.
limited() {
	LIMITED=("$PYTHON" -B "$FOLDER/test/limited.py" --cpu "$LIMIT" --idle "$IDLE" --folder "$@")
}

# Why what has left this log was given up; nothing if it was not.
given_up() { grep '^given up: ' "$1" | tail -n 1; }

# ---- suites ----------------------------------------------------------------

# The limits themselves: what is given up says so.  In a subshell, because their failures are what is wanted.
suite_limits() {
	local folder=$FOLDER/test/t
	printf 'sleep 1000;\n' >"$folder/hangs.pl"
	printf '1 while 1;\n' >"$folder/spins.pl"
	printf '#!/bin/sh\nwhile :; do :; done\n' >"$folder/spins"
	chmod 755 "$folder/spins"
	gives_up hang 'has done nothing' tap_file "$folder/hangs.pl"
	gives_up loop 'has used . s' tap_file "$folder/spins.pl"
	gives_up regress 'has used . s' regress_suite limits "$folder/spins"
	gives_up diff 'has used . s' diff_seed "$INPLACE_SEED"
	rm "$folder"/hangs.pl "$folder"/spins*
}

# gives_up NAME REASON COMMAND...: run with next to no time, the command prints a result that has this reason.
gives_up() {
	local log=$LOGS/limits.log
	(
		LOGS=$FOLDER LIMIT=1 IDLE=1
		"${@:3}"
	) >"$log" 2>&1 || true
	if grep -qE "^FAIL .* given up: $2" "$log"; then
		result "limits/$1" ok "$(grep -oE 'given up: .*' "$log" | head -n 1)"
	else
		result "limits/$1" FAIL "is not given up, or does not say so"
		show "$log" 40
	fi
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
	local suite=$1 tool=$2 before=$FAILED line reason status=0
	shift 2
	local folder=$FOLDER/test/$suite
	local options=(--bindir="$BINDIR" --dlpath="$("$PG_CONFIG" --pkglibdir)" --dbname="$suite"
		--host="$FOLDER" --port=5432 --user=postgres --inputdir="$folder" --outputdir="$folder"
		--load-extension=inplace)
	(($#)) || options+=(--schedule="$folder/schedule")
	limited "$FOLDER/data" "$tool" "${options[@]}" "$@"
	while IFS= read -r line; do
		regress_line "$suite" "$line"
	done < <(as_server "${LIMITED[@]}" 2>&1 | tee "$LOGS/$suite.log")
	wait $! || status=$?
	reason=$(given_up "$LOGS/$suite.log") || true
	if [[ -n $reason ]] || ((status != 0 && FAILED == before)); then
		result "$suite" FAIL "${reason:-broke off}"
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
	local name log folder good bad reason skipped status=0
	name=$(basename "$1" .pl)
	log=$LOGS/tap_$name.log
	folder=$FOLDER/tap/$name
	as_server mkdir -p "$folder"
	limited "$folder" prove -v "$1"
	apart as_server env TMPDIR="$FOLDER" TESTDIR="$folder" TESTDATADIR="$folder/tmp_check" \
		TESTLOGDIR="$folder/tmp_check/log" PATH="$BINDIR:$PATH" PGPORT=65432 \
		PG_REGRESS="$PGXS_TEST/regress/pg_regress" top_builddir="$FOLDER/tap" \
		PERL5LIB="$PGXS_TEST/perl" PG_CONFIG="$PG_CONFIG" \
		"${LIMITED[@]}" >"$log" 2>&1 || status=$?
	good=$(grep -c '^ok ' "$log") || true
	bad=$(grep '^not ok ' "$log" | grep -vc '# TODO') || true
	((status == 0 || bad > 0)) || bad=1
	reason=$(given_up "$log") || true
	if ((bad == 0)); then
		skipped=$(sed -nE 's/^(1\.\.0|ok [0-9]+) # (SKIP|skip) //p' "$log" | sort -u | paste -sd ';')
		printf 'ok    %-40s %s\n%s %s\n' "tap/$name" "$good tests${skipped:+, skipped: $skipped}" "$good" 0
		rm -rf "$folder"
		return
	fi
	printf 'FAIL  %-40s %s\n' "tap/$name" "$bad of $((good + bad)) tests${reason:+; $reason}"
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
	local log=$LOGS/diff_$1.log statements=50000 data=$FOLDER/diff_$1 status=0 skip= reason
	# an update that is not HOT has heap check deferrable constraints again, and wait: once in millions of statements
	((FULL == 0)) || statements=640000 skip=deferred
	logged "initdb_$1" as_server "$BINDIR/initdb" -D "$data" -U postgres -A trust -N --no-locale -E UTF8
	sed "s,^unix_socket_directories = .*,unix_socket_directories = '$data'," "$FOLDER/data/postgresql.conf" >"$data/postgresql.conf"
	echo 'autovacuum = off' >>"$data/postgresql.conf"
	pg_ctl -D "$data" -l "$FOLDER/server.log" -w start
	limited "$data" "$PYTHON" "$ROOT/test/diff/diff.py" --socket "$data" --seed "$1" --statements "$statements" --skip "$skip"
	apart "${LIMITED[@]}" >"$log" 2>&1 || status=1
	if ((status == 0)); then
		printf 'ok    %-40s %s\n1 0\n' "diff/seed $1" "$statements statements"
	else
		reason=$(given_up "$log") || true
		printf 'FAIL  %-40s %s\n' "diff/seed $1" "$statements statements${reason:+; $reason}"
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

# PostgreSQL's own suites.
suite_core() {
	if "$PYTHON" -B "$ROOT/test/core/selftest.py" >"$LOGS/core_selftest.log" 2>&1; then
		result core/selftest ok ""
	else
		result core/selftest FAIL "the comparison does not do what it should"
		show "$LOGS/core_selftest.log" 40
	fi
	run_core core "$@"
}

# What other extensions do when default_table_access_method is inplace: Debian's packages, and contrib's suites.
# One test is that of a module.
suite_extensions() {
	if (($#)); then
		run_core extensions "${@/#/contrib/}"
	else
		[[ " ${suites[*]} " == *" tap "* ]] || suite_tap 265_repack 270_packages
		run_core extensions contrib
	fi
}

# run_core SUITE [names]: core.py prints a line for each test, and indented below it what differs.
run_core() {
	local suite=$1 folder=$FOLDER/$1 version source line reason status=0 before
	local options=(--pg-config "$PG_CONFIG" --source "$folder/source" --folder "$folder/run" --heap "$folder/heap"
		--report "$folder/report")
	shift
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
	before=$FAILED
	LIMIT=$((LIMIT * 3)) limited "$folder" "$PYTHON" "$FOLDER/test/core/core.py" "${options[@]}" "$@"
	while IFS= read -r line; do
		core_line "$suite" "$line"
	done < <(as_server "${LIMITED[@]}" 2>&1 | tee "$LOGS/$suite.log")
	wait $! || status=$?
	reason=$(given_up "$LOGS/$suite.log") || true
	if [[ -n $reason ]] || ((status != 0 && FAILED == before)); then result "$suite" FAIL "${reason:-broke off}"; fi
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
	for step in check-scalar check-asan check-valgrind check-install; do
		tidset_step "$step" make -C "$ROOT/tidset" "${options[@]}" "$step"
	done
	as_server mkdir -p "$FOLDER/tidset"
	tidset_step server env PG_CONFIG="$PG_CONFIG" TMPDIR="$FOLDER/tidset" "$ROOT/tidset/test/server/run.sh" test
}

tidset_step() {
	local log=$LOGS/tidset_$1.log reason
	limited "$FOLDER/tidset" "${@:2}"
	if apart "${LIMITED[@]}" >"$log" 2>&1; then
		result "tidset/${1#check-}" ok ""
	else
		reason=$(given_up "$log") || true
		result "tidset/${1#check-}" FAIL "seed $INPLACE_SEED${reason:+; $reason}"
		show "$log" 40
	fi
}

# Archiving; the cluster's own WAL, of all the suites before, is packed and unpacked too.
suite_walpack() {
	local folder=$FOLDER/walpack line name reason status=0 before=$FAILED
	local options=(--bindir "$BINDIR" --seed "$INPLACE_SEED" --work "$folder/work" --segments "$FOLDER/data/pg_wal")
	local pattern='^(ok|FAIL) +([^ ]+) +(.*)$'
	((FULL == 0)) || options+=(--full)
	for name; do options+=(--only "$name"); done
	logged walpack_build make -C "$ROOT/walpack" PG_CONFIG="$PG_CONFIG" test-programs
	cp -r "$ROOT/walpack" "$folder"
	((EUID != 0)) || chown -R "$(server_user)" "$folder"
	limited "$folder" "$PYTHON" "$folder/test/test_walpack.py" "${options[@]}"
	while IFS= read -r line; do
		if [[ $line =~ $pattern ]]; then
			result "walpack/${BASH_REMATCH[2]}" "${BASH_REMATCH[1]}" "${BASH_REMATCH[3]}"
		else
			printf '%s\n' "$line"
		fi
	done < <(as_server "${LIMITED[@]}" 2>&1 | tee "$LOGS/walpack.log")
	wait $! || status=$?
	reason=$(given_up "$LOGS/walpack.log") || true
	if [[ -n $reason ]] || ((status != 0 && FAILED == before)); then result walpack FAIL "${reason:-broke off}"; fi
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
		*)
			[[ " $SUITES " == *" $arg "* || ($arg == */* && " $CHOICE " == *" ${arg%%/*} "*) ]] ||
				die "no suite \"$arg\": ${SUITES// /, }, or one test of a suite as in regress/NAME"
			suites+=("$arg")
			;;
		esac
	done
	if ((${#suites[@]} == 0)); then
		read -ra suites <<<"$SUITES"
		((FULL)) || suites=("${suites[@]/#$LONG/}")
	fi
	if [[ " ${suites[*]} " == *" extensions"* ]]; then
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
	for suite in $SUITES; do
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

