# The tests: run.sh reads this file.  A suite NAME is a word of SUITES and a function suite_NAME, which gets the tests
# that are wanted as arguments, or none; it prints and counts them with "result".

SUITES="limits house release regress isolation tap diff growth core tidset pagedelta walpack pbtree upgrade extensions"
CHOICE="regress isolation tap core tidset pagedelta walpack pbtree extensions"	# of which single tests can be named
LONG="extensions"								# run with --full, or by name
# What runs if nothing is named: of each part what finds most in its time.
QUICK=(house release regress isolation diff tidset/{scalar,server} pagedelta
	walpack/{settings,commands,damaged_wal,recovery,damaged_archive_stops_recovery}
	pbtree/{sql,ways-to-build,keys-twins,keys-vacuum-under-load,unique,differences,crash,standby,damage}
	tap/{crash_tpcb,crash_mixed,full_disk,standby_pages,minimal_unlogged,random_damage,damage_that_readers_meet,small_tables}
	tap/{frozen_rows,overlaid_rows,moved_rows,prepared_transactions,row_locks,damaged_locks,removal_horizons,dump_and_restore,table_rewrites}
	tap/{logical_decoding,subscriber_conflicts,tools_that_copy,undo_ages,queue,damaged_long_chain,brin_summary,extension_update,examples_of_docs})
LIMIT=1200										# seconds of processor time, for a suite or a file of tap
IDLE=300										# seconds without any
MINUTES=0										# what would start later is left out; 0: nothing
# Core's own tools wait for at most so many seconds that pass.
export PG_TEST_TIMEOUT_DEFAULT=900 PGISOLATIONTIMEOUT=900 PGCTLTIMEOUT=900
RINGS_ONLY='-c inplace.debug_undo_at_home=off'
PASSED=0
FAILED=0
LEFT_OUT=0
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

# too_late NAME: whether it is too late to start this; says so.
too_late() {
	((MINUTES > 0 && SECONDS >= MINUTES * 60)) || return
	LEFT_OUT=$((LEFT_OUT + 1))
	printf 'left out: %s, after %s minutes\n' "$1" $((SECONDS / 60))
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

# own_source SUITE: sets "source" to the folder of the source of the server that is tested, or says why the suite cannot run; of a
# server from binary packages there need not be a source.
own_source() {
	local version log=$LOGS/$1_source.log
	version=$("$PG_CONFIG" --version)
	! source=$("$ROOT/test/fetch_source.sh" "$(sed -E 's/^PostgreSQL ([0-9.]+).*/\1/' <<<"$version")" "$CACHE/source" 2>"$log") || return 0
	if is_packaged; then
		printf 'left out: %s needs the source of %s\n' "$1" "$version"
	else
		result "$1" FAIL "no source of PostgreSQL"
		show "$log" 20
	fi
	return 1
}

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

release_step() {
	local remark
	if remark=$("${@:2}" 2>&1); then
		result "release/$1" ok ""
	else
		result "release/$1" FAIL "$remark"
	fi
}

# What a release is made of: its files agree with each other, and the same commit gives the same archive.  And servers
# that run.sh builds are kept.
suite_release() {
	local round
	release_step metadata "$PYTHON" -B "$ROOT/packaging/check.py"
	release_step servers "$ROOT/test/server_test.sh"
	git -C "$ROOT" rev-parse HEAD >/dev/null 2>&1 || return 0
	cp "$ROOT/Makefile" "$ROOT/META.json" "$FOLDER"
	for round in 1 2; do
		rm -rf "$FOLDER/dist"
		# another time of day, umask and time zone
		(umask $((round * 22)) && TZ=UTC+$round GIT_DIR=$(git -C "$ROOT" rev-parse --absolute-git-dir) make -s -C "$FOLDER" dist) \
			>"$LOGS/dist$round.log" 2>&1 || true
		sleep 1
	done
	if (($(grep -cE "^[0-9a-f]{64} " "$LOGS/dist1.log") == 2)) && cmp -s "$LOGS"/dist[12].log; then
		result release/dist ok "$(cut -c 1-16 "$LOGS/dist1.log" | paste -sd ' ')"
	else
		result release/dist FAIL "make dist fails, or gives other bytes the second time"
		show "$LOGS/dist2.log" 20
	fi
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

# The order of the house: modules in layers, invariants cited, code as pgindent leaves it and in 80 columns, versions in one place,
# links that lead somewhere.
suite_house() {
	house_step layers "$PYTHON" -B "$ROOT/test/layers.py" "$ROOT"/{inplace,common,pagedelta,tidset} \
		"$("$PG_CONFIG" --includedir-server)"
	logged pbtree_build "${PART_MAKE[@]}" -C "$ROOT/pbtree"
	house_step layers_pbtree "$PYTHON" -B "$ROOT/test/layers.py" "$ROOT"/{pbtree,common} "$("$PG_CONFIG" --includedir-server)"
	house_step versions "$PYTHON" -B "$ROOT/test/versions.py" "$ROOT"
	house_step columns "$PYTHON" -B "$ROOT/test/columns.py" "$ROOT"/{inplace,common,pagedelta,tidset,pbtree,walpack}
	house_step links "$PYTHON" -B "$ROOT/test/links.py" "$ROOT"
	house_indent
}

# house_step NAME COMMAND...: the last line that the command prints is the remark.
house_step() {
	local log=$LOGS/house_$1.log
	if "${@:2}" >"$log" 2>&1; then
		result "house/$1" ok "$(tail -n 1 "$log")"
	else
		result "house/$1" FAIL "$(tail -n 1 "$log")"
		show "$log" 60
	fi
}

# pgindent comes with the source of 16 and newer, which is here if such a server was built; --full gets it.
house_indent() {
	local source
	source=$(compgen -G "$CACHE/source/postgresql-1[6-9].*" | sort -V | tail -n 1) || true
	if [[ -z $source ]] && ((FULL)); then
		source=$("$ROOT/test/fetch_source.sh" 18 "$CACHE/source" 2>"$LOGS/house_source.log") || true
	fi
	if [[ -n $source ]]; then
		house_step pgindent "$ROOT/test/pgindent.sh" "$source" "$PG_CONFIG" "$FOLDER/pgindent"
	elif ((FULL)); then
		result house/pgindent FAIL "no source of PostgreSQL 18 to be had"
	else
		printf 'left out: house/pgindent needs the source of PostgreSQL 16 or newer (--pg 18, --full)\n'
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
# Twice: with undo at home, and in rings only.
suite_isolation() {
	regress_suite isolation "$PGXS_TEST/isolation/pg_isolation_regress" "$@"
	PGOPTIONS=$RINGS_ONLY regress_suite isolation "$PGXS_TEST/isolation/pg_isolation_regress" "$@"
}

# One file; its tests count one by one, and breaking off counts as one that failed.  Last line: passed, failed.
tap_file() {
	local name log folder good bad reason skipped status=0 begun=$SECONDS
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
		skipped=$(sed -nE 's/^(1\.\.0|ok [0-9]+) # (SKIP|skip) |^.*\.pl \.+ skipped: //p' "$log" | sort -u | paste -sd ';')
		printf 'ok    %-40s %s\n%s %s\n' "tap/$name" "$good tests, $((SECONDS - begun)) s${skipped:+, skipped: $skipped}" "$good" 0
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
		if too_late "$(basename "$item" .pl)"; then
			echo 0 0 >"$FOLDER/${item##*/}.out"
			continue
		fi
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

# The files mostly wait, so more run at a time than there are processors.
suite_tap() {
	local file files=()
	install_pbtree
	for file in "$FOLDER"/test/t/*.pl; do
		if (($# == 0)) || [[ " $* " == *" $(basename "$file" .pl) "* ]]; then files+=("$file"); fi
	done
	(($# == 0 || $# == ${#files[@]})) || die "not all of these are in test/t: $*"
	at_a_time $(($(nproc) * 2)) tap_file "${files[@]}"
}

# In a cluster of its own: a transaction in another database may have heap's CLUSTER look for TOAST that is gone.
# autovacuum would lock the tables of one side only; the testers have VACUUM among their statements.
diff_seed() {
	local log=$LOGS/diff_$1.log statements=50000 data=$FOLDER/diff_$1 status=0 skip= reason
	local -x PGOPTIONS=
	# every other one without undo at home
	(($1 % 2)) || PGOPTIONS=$RINGS_ONLY
	# an update that is not HOT has heap check deferrable constraints again, and wait: once in millions of statements
	((FULL == 0)) || statements=640000 skip=deferred
	init_cluster "$data" < <(
		cat "$FOLDER/data/postgresql.conf"
		printf '%s\n' "unix_socket_directories = '$data'" 'autovacuum = off'
	)
	start_cluster "$data"
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

# Does a table or an index grow where heap's does not?  Some of bench/growth.toml's workloads, those that once did: autovacuum is
# on, so in a cluster of its own.  With btree a small table whose rising key is updated has 1.1 to 1.7 times heap's size, as
# autovacuum comes: only twice as much is a fault.
suite_growth() {
	local folder=$FOLDER/growth
	install_pbtree
	mkdir -p "$folder"
	cp -r "$ROOT/bench" "$folder"
	give_server "$folder"
	init_cluster "$folder/data" < <(
		cat "$ROOT/bench/growth.conf"
		echo "unix_socket_directories = '$folder'"
	)
	start_cluster "$folder/data"
	PGHOST=$folder run_lines growth "$PYTHON" -B "$folder/bench/keys.py" --short
	PGHOST=$folder run_lines growth "$PYTHON" -B "$folder/bench/growth.py" --short --factor 2 --out "$folder"
	pg_ctl -D "$folder/data" -m immediate stop
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
		[[ " ${suites[*]} " == *" tap "* ]] || suite_tap repack packaged_extensions
		run_core extensions contrib
	fi
}

# run_core SUITE [names]: core.py prints a line for each test, and indented below it what differs.
run_core() {
	local suite=$1 folder=$FOLDER/$1 source line reason status=0 before
	local options=(--pg-config "$PG_CONFIG" --source "$folder/source" --folder "$folder/run" --heap "$folder/heap"
		--report "$folder/report")
	shift
	((FULL == 0)) || options+=(--full)
	[[ -z ${CORE_SUGGEST:-} ]] || options+=(--suggest "$CORE_SUGGEST")
	own_source "$suite" || return 0
	as_server mkdir -p "$folder/source/src" "$folder/run"
	cp -r "$source/src/test" "$folder/source/src"
	cp -r "$source/contrib" "$folder/source"
	mkdir -p "$STATE/core"
	cp -r "$STATE/core" "$folder/heap"
	give_server "$folder"
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
	local step
	local options=(OUT="$STATE/tidset" SEED="$INPLACE_SEED" ROUNDS=16)
	((FULL == 0)) || options=(OUT="$STATE/tidset" SEED="$INPLACE_SEED" ROUNDS=400 FULL=-f)
	(($#)) || set -- scalar asan valgrind install server
	as_server mkdir -p "$FOLDER/tidset"
	for step; do
		case $step in
		server) tidset_step server env PG_CONFIG="$PG_CONFIG" TMPDIR="$FOLDER/tidset" "$ROOT/tidset/test/server/run.sh" test ;;
		*) tidset_step "$step" make -C "$ROOT/tidset" "${options[@]}" "check-$step" ;;
		esac
	done
}

tidset_step() {
	local log=$LOGS/tidset_$1.log reason
	limited "$FOLDER/tidset" "${@:2}"
	if apart "${LIMITED[@]}" >"$log" 2>&1; then
		result "tidset/$1" ok "$(grep 'left out' "$log" || true)"
	else
		reason=$(given_up "$log") || true
		result "tidset/$1" FAIL "seed $INPLACE_SEED${reason:+; $reason}"
		show "$log" 40
	fi
}

# The library outside of a server, beside the server's own function; then under extensions that use generic WAL.  With
# --full millions of page pairs, and those that are recorded on the way; PGVECTOR_SRC names pgvector's source.
suite_pagedelta() {
	local folder=$FOLDER/pagedelta source rum='' rounds=200000 name options lines
	mkdir -p "$folder/library" "$folder/pairs"
	give_server "$folder"
	own_source pagedelta || return 0
	rum=$("$ROOT/test/fetch_source.sh" postgresql-rum "$CACHE/source" 2>"$LOGS/pagedelta_rum.log") || true
	options=(--pg-config "$PG_CONFIG" --source "$source" --rum "$rum" --pgvector "${PGVECTOR_SRC:-}" --seed "$INPLACE_SEED")
	for name; do options+=(--only "$name"); done
	((FULL == 0)) || options+=(--full --pairs "$folder/pairs")
	((FULL == 0)) || rounds=10000000
	cp -r "$ROOT"/{pagedelta,common,test} "$folder"
	give_server "$folder"
	run_lines pagedelta "$PYTHON" -B "$folder/pagedelta/test/test_pagedelta.py" --work "$folder/work" "${options[@]}"
	(($# == 0)) || return 0
	lines=(make -C "$ROOT/pagedelta/test" OUT="$folder/library" SOURCE="$source" PG_CONFIG="$PG_CONFIG" SEED="$INPLACE_SEED"
		PAIRS="$(compgen -G "$folder/pairs/*.pairs" | paste -sd ' ' || true)")
	for name in fast scalar asan; do
		pagedelta_step "$name" "${lines[@]}" "ROUNDS=$rounds" "check-$name"
		rounds=$((rounds < 1000000 ? rounds : 1000000))
	done
}

pagedelta_step() {
	local log=$LOGS/pagedelta_$1.log
	limited "$FOLDER/pagedelta" "${@:2}"
	if apart "${LIMITED[@]}" >"$log" 2>&1; then
		result "pagedelta/$1" ok "$(grep -E '^[0-9]+ (random pairs|pairs of)' "$log" | sed -E 's,of /.*/,of ,' | paste -sd ';')"
	else
		result "pagedelta/$1" FAIL "seed $INPLACE_SEED; $(given_up "$log" || true)"
		show "$log" 40
	fi
}

# run_lines SUITE COMMAND...: a program that prints a line "ok NAME REMARK" or "FAIL NAME REMARK" for each test.
run_lines() {
	local suite=$1 line reason status=0 before=$FAILED pattern='^(ok|FAIL) +([^ ]+) +(.*)$'
	limited "$FOLDER/$suite" "${@:2}"
	while IFS= read -r line; do
		if [[ $line =~ $pattern ]]; then
			result "$suite/${BASH_REMATCH[2]}" "${BASH_REMATCH[1]}" "${BASH_REMATCH[3]}"
		else
			printf '%s\n' "$line"
		fi
	done < <(as_server "${LIMITED[@]}" 2>&1 | tee "$LOGS/$suite.log")
	wait $! || status=$?
	reason=$(given_up "$LOGS/$suite.log") || true
	if [[ -n $reason ]] || ((status != 0 && FAILED == before)); then
		result "$suite" FAIL "${reason:-broke off}"
		show "$LOGS/$suite.log" 40
	fi
}

# Archiving; the cluster's own WAL, of all the suites before, is packed and unpacked too.
suite_walpack() {
	local folder=$FOLDER/walpack name
	local options=(--bindir "$BINDIR" --seed "$INPLACE_SEED" --work "$folder/work" --segments "$FOLDER/data/pg_wal")
	((FULL == 0)) || options+=(--full)
	for name; do options+=(--only "$name"); done
	logged walpack_build make -C "$ROOT/walpack" PG_CONFIG="$PG_CONFIG" test-programs
	cp -r "$ROOT/walpack" "$folder"
	give_server "$folder"
	run_lines walpack "$PYTHON" "$folder/test/test_walpack.py" "${options[@]}"
}

install_pbtree() {
	local as=()
	[[ -w $("$PG_CONFIG" --pkglibdir) ]] || as=(as_root)
	logged pbtree_build "${PART_MAKE[@]}" -C "$ROOT/pbtree"
	logged pbtree_install "${as[@]}" "${PART_MAKE[@]}" -C "$ROOT/pbtree" install
}

# The index access method, in clusters of its own; with --full, or if they are named (regress, isolation), the server's own
# suites too, with pbtree in place of btree.
suite_pbtree() {
	local folder=$FOLDER/pbtree name source
	local options=(--bindir "$BINDIR" --seed "$INPLACE_SEED" --work "$folder/work")
	((FULL == 0)) || options+=(--full)
	for name; do options+=(--only "$name"); done
	if ((FULL)) || [[ " $* " == *" regress "* || " $* " == *" isolation "* ]]; then
		own_source pbtree || return 0
		mkdir -p "$folder/source/src" "$STATE/core"
		cp -r "$source/src/test" "$folder/source/src"
		cp -r "$STATE/core" "$folder/keep"
		options+=(--source "$folder/source" --keep "$folder/keep" --suggest "$folder/suggest")
	fi
	install_pbtree
	mkdir -p "$folder"
	cp -r "$ROOT/common" "$FOLDER"
	give_server "$folder"
	run_lines pbtree "$PYTHON" -B "$FOLDER/test/pbtree/test_pbtree.py" "${options[@]}"
	[[ ! -d $folder/keep ]] || cp -r "$folder/keep/." "$STATE/core"
}

# The servers to upgrade from: UPGRADE_FROM is a pg_config; else 15 before 18, 16 before 17, both 15 and 18 before 19.  None for 15
# and 16.
older_servers() {
	if [[ -n ${UPGRADE_FROM:-} ]]; then
		echo "$UPGRADE_FROM"
		return
	fi
	case $("$PG_CONFIG" --version) in
	*\ 19*) older_server 15 packages && older_server 18 source ;;
	*\ 18*) older_server 15 packages ;;
	*\ 17*) older_server 16 source ;;
	esac
}

# older_server MAJOR SOURCE: its pg_config
older_server() (
	PG=$1 SERVER=$2 CASSERT='' PG_CONFIG=''
	need_packages >&2
	choose_server >&2
	echo "$PG_CONFIG"
)

# pg_upgrade in each of its modes; the older server's library is built beside this one's.
suite_upgrade() {
	local olds old folder=$FOLDER/upgrade as
	olds=$(older_servers)
	for old in $olds; do
		as=()
		rm -rf "$folder"
		mkdir -p "$folder/src" "$folder/work"
		cp -r "$ROOT"/{inplace,common,pagedelta,tidset} "$folder/src"
		logged upgrade_clean make -C "$folder/src/inplace" PG_CONFIG="$old" clean
		[[ -w $("$old" --pkglibdir) ]] || as=(as_root)
		logged upgrade_build make -C "$folder/src/inplace" -j"$(nproc)" PG_CONFIG="$old"
		logged upgrade_install "${as[@]}" make -C "$folder/src/inplace" PG_CONFIG="$old" install
		((EUID != 0)) || chown -R "$(server_user)" "$folder"
		run_lines upgrade "$PYTHON" -B "$FOLDER/test/upgrade/upgrade.py" --old "$("$old" --bindir)" --new "$BINDIR" --work "$folder/work"
	done
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
	local arg suite suites=() names remark='' begun costs='' packages=(libipc-run-perl libzstd-dev python3 python3-psycopg2)
	FULL=0 ALL=0
	for arg; do
		case $arg in
		--full) FULL=1 ALL=1 ;;
		--all) ALL=1 ;;
		--minutes=*[0-9]) MINUTES=${arg#*=} ;;
		*)
			[[ " $SUITES " == *" $arg "* || ($arg == */* && " $CHOICE " == *" ${arg%%/*} "*) ]] ||
				die "no suite \"$arg\": ${SUITES// /, }, or one test of a suite as in regress/NAME"
			suites+=("$arg")
			;;
		esac
	done
	if ((${#suites[@]} == 0)); then
		suites=($SUITES)
		((FULL)) || suites=("${suites[@]/#$LONG/}")
		((ALL)) || suites=("${QUICK[@]}")
	fi
	if [[ " ${suites[*]} " == *" extensions"* ]]; then
		export INPLACE_PACKAGES=1
		[[ $SERVER != packages ]] || packages+=("${EXTENSION_PACKAGES[@]}")
	fi
	[[ $SERVER != packages ]] || packages+=(systemtap-sdt-dev)	# what probes.h of Debian's server includes, RUM's source does
	# what the default run does without
	((FULL == 0)) || packages+=(valgrind pgbackrest barman)
	need_packages "${packages[@]}"
	build
	say "Starting a cluster"
	new_cluster --data-checksums < <(test_settings)
	cp -r "$ROOT"/{test,README.md,docs} "$FOLDER"
	give_server "$FOLDER/test" "$FOLDER/docs" "$FOLDER/README.md"
	export INPLACE_SEED=${INPLACE_SEED:-1}
	((FULL == 0)) || LIMIT=$((LIMIT * 5))
	((FULL == 0)) || export INPLACE_CRASH_ROUNDS=${INPLACE_CRASH_ROUNDS:-40}
	for suite in $SUITES; do
		mapfile -t names < <(printf '%s\n' "${suites[@]}" | sed -n "s,^$suite/,,p")
		if ((${#names[@]})) || [[ " ${suites[*]} " == *" $suite "* ]]; then
			! too_late "$suite" || continue
			say "Suite $suite, after $((SECONDS / 60)) minutes"
			begun=$SECONDS
			"suite_$suite" ${names[@]+"${names[@]}"}
			costs+=", $suite $((SECONDS - begun))"
		fi
	done
	suite_server_log
	((FAILED == 0)) || say "Logs: $LOGS"
	((LEFT_OUT == 0)) || remark=", $LEFT_OUT left out for want of time"
	echo "seconds: ${costs#, }"
	echo "$PASSED passed, $FAILED failed$remark; $((SECONDS / 60)) minutes"
	((FAILED == 0))
}

# Snapshots of autovacuum's would keep versions that tests say are gone.  Where scans are chosen by enable_seqscan, JIT compilation
# would take most of the time.
test_settings() {
	cat <<-CONF
		fsync = off
		autovacuum = off
		jit = off
		max_prepared_transactions = 10
		log_line_prefix = '%m [%p] %a '
	CONF
}

