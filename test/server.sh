# The server that is built for and tested: run.sh reads this file.  server_options takes the choice from the arguments;
# choose_server gets the server and sets PG_CONFIG, BINDIR and PGXS_TEST.
#
# Debian's packages serve 15; a server of 16 to 19, or one with assertions, is built from a distribution's source once
# and kept in CACHE, in a folder of its name: 17.11, or 17.11-cassert.  As long as there is no source package of 19, Debian's
# binary packages for experimental are put into a folder there (fetch_server.sh): 19-packages.  That server has no
# assertions; with --cassert the extension has its own.

PG=								# --pg: 15 to 19
CASSERT=						# --cassert: "-cassert"
SERVER=							# where it comes from: own (of the caller), packages, source
ASKED=							# which one was asked for, if any was
MAJORS="15 16 17 18 19"
PACKAGED=19						# where there may be no source package
NO_SERVER=77					# exit status where there are no packages either: of a version that is no release yet
ASSERTS=						# make's flags for assertions, in the extension only, and what goes with them
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/pg_inplace
((EUID != 0)) || CACHE=/var/cache/pg_inplace
# What contrib's modules and the procedural languages need is here too, for their suites.
BUILD_PACKAGES=(bison flex perl pkg-config libipc-run-perl libicu-dev liblz4-dev libperl-dev libreadline-dev libssl-dev
	libxml2-dev libzstd-dev python3-dev uuid-dev zlib1g-dev)

# server_options ARGUMENTS...: takes --pg and --cassert out; the rest is in ARGUMENTS.
server_options() {
	ARGUMENTS=()
	while (($#)); do
		case $1 in
		--pg)
			PG=${2:-none}
			shift
			;;
		--pg=*) PG=${1#*=} ;;
		--cassert) CASSERT=-cassert ;;
		*) ARGUMENTS+=("$1") ;;
		esac
		(($# == 0)) || shift
	done
	[[ -z $PG || " $MAJORS " == *" $PG "* ]] || die "--pg takes one of $MAJORS"
	ASKED=${PG_CONFIG:-$PG$CASSERT}
	SERVER=own
	if [[ -z ${PG_CONFIG:-} ]]; then
		SERVER=source
		[[ ${PG:=15}$CASSERT != 15 ]] || SERVER=packages
		[[ -z $ASKED ]] || ASKED=$PG$CASSERT
	fi
}

# The packages that the server is, or is made with.
server_packages() {
	case $SERVER in
	packages) echo postgresql-15 postgresql-server-dev-15 ;;
	source)
		[[ " $PACKAGED " != *" $PG "* ]] || echo patchelf
		echo "${BUILD_PACKAGES[@]}"
		;;
	esac
}

choose_server() {
	case $SERVER in
	own) check_own_server ;;
	packages) PG_CONFIG=/usr/lib/postgresql/15/bin/pg_config ;;
	source)
		mkdir -p "$CACHE"
		config_of_server >/dev/null || build_server || exit $?
		PG_CONFIG=$(config_of_server)
		! is_packaged || ASSERTS=${CASSERT:+-DUSE_ASSERT_CHECKING}
		;;
	esac
	[[ -x $PG_CONFIG ]] || die "no $PG_CONFIG: set PG_CONFIG to the pg_config of your PostgreSQL"
	[[ -z $ASSERTS && $("$PG_CONFIG" --configure) != *--enable-cassert* ]] || ASSERTS+=$(poison)
	BINDIR=$("$PG_CONFIG" --bindir)
	PGXS_TEST=$("$PG_CONFIG" --pkglibdir)/pgxs/src/test
}

# The compiler's flag, if it has it, that gives variables which are not initialised a value that hurts.
poison() {
	local cc flag=-ftrivial-auto-var-init=pattern
	read -ra cc < <("$PG_CONFIG" --cc)
	! "${cc[@]}" "$flag" -x c -c -o /dev/null /dev/null 2>/dev/null || echo " $flag"
}

# PG_CONFIG wins, but must not be another server than the one that was asked for.
check_own_server() {
	local version
	PG_CONFIG=$(command -v "$PG_CONFIG") || die "PG_CONFIG is no program"
	version=$("$PG_CONFIG" --version)
	[[ -z $PG || $version == "PostgreSQL $PG"[!0-9]* ]] || die "PG_CONFIG is that of $version, --pg wants $PG"
	[[ -z $CASSERT || $("$PG_CONFIG" --configure) == *--enable-cassert* ]] ||
		die "PG_CONFIG is that of a server without assertions, and --cassert wants them"
}

# ---- servers built from source, or put together from packages ----------------

config_of_built() {
	local folder
	folder=$(built_server) && echo "$folder/bin/pg_config"
}

config_of_packages() {
	local config=$CACHE/$PG-packages/usr/lib/postgresql/$PG/bin/pg_config
	[[ -x $config ]] && echo "$config"
}

# Of the server that there is.
config_of_server() { config_of_built || config_of_packages; }

# From packages, if there is no source.
is_packaged() { [[ $PG_CONFIG == */[0-9]*-packages/* ]]; }

# What configure gets, a word a line; a server that was built in another way is not used.
configure_words() {
	local optimize=-O2
	[[ -z $CASSERT ]] || optimize=-O1
	printf '%s\n' "CFLAGS=$optimize" PYTHON=/usr/bin/python3 PERL=/usr/bin/perl --enable-debug --enable-tap-tests \
		--with-icu --with-libxml --with-lz4 --with-openssl --with-perl --with-python --with-uuid=e2fs --with-zstd
	[[ -z $CASSERT ]] || echo --enable-cassert
	[[ -z $CASSERT ]] || ((PG < 17)) || echo --enable-injection-points
}

# The folder of the newest one there is.
built_server() {
	local folder
	while read -r folder; do
		if [[ ${folder##*/} =~ ^$PG(\.|rc)[0-9]+$CASSERT$ ]] && cmp -s "$folder/built-with" <(configure_words) &&
			"$folder/bin/postgres" --version >/dev/null 2>&1; then
			echo "$folder"
			return
		fi
	done < <(printf '%s\n' "$CACHE/$PG"* | sort -rV)
	return 1
}

# Instead, where there is no source.
fetch_packages() {
	say "No source of PostgreSQL $PG: fetching Debian's packages of it (60 MB) into $CACHE/$PG-packages, once"
	"$ROOT/test/fetch_server.sh" "$PG" "$CACHE/$PG-packages" >"$LOGS/server-packages.log" 2>&1 || {
		tail -n 20 "$LOGS/server-packages.log" >&2
		printf 'run.sh: no packages of PostgreSQL %s (whole output: %s)\n' "$PG" "$LOGS/server-packages.log" >&2
		exit "$NO_SERVER"
	}
}

# One at a time.  It gets its name when it is whole, so that one that was broken off is never used.
build_server() (
	umask 022
	exec {lock}>"$CACHE/$PG.lock"
	flock -n "$lock" || {
		say "Waiting for another run that builds PostgreSQL $PG"
		flock "$lock"
	}
	! config_of_server >/dev/null || exit 0
	rm -rf "$CACHE/.$PG".*
	say "Fetching the source of PostgreSQL $PG (25 to 35 MB)"
	source=$("$ROOT/test/fetch_source.sh" "$PG" "$CACHE/source" 2>"$LOGS/server-source.log") || {
		if [[ " $PACKAGED " == *" $PG "* ]]; then
			fetch_packages
			exit
		fi
		tail -n 20 "$LOGS/server-source.log" >&2
		die "no source of PostgreSQL $PG (whole output: $LOGS/server-source.log)"
	}
	work=$(mktemp -d "$CACHE/.$PG.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	chmod 755 "$work"
	prefix=$CACHE/${source##*-}$CASSERT
	say "Building PostgreSQL ${source##*-}${CASSERT:+ with assertions} in $CACHE, once (10 processor minutes)"
	make_server
	configure_words >"$work/root$prefix/built-with"
	rm -rf "$prefix"
	mv "$work/root$prefix" "$prefix" || die "$prefix cannot be made"
	say "Built in $SECONDS s"
)

# Beside the source, which the suite core reads too.
make_server() {
	local words make=(make -s -C "$work/build" -j"$(nproc)")
	mapfile -t words < <(configure_words)
	mkdir "$work/build"
	cd "$work/build" || exit 1
	SECONDS=0
	logged server-configure "$source/configure" --prefix="$prefix" "${words[@]}"
	logged server-build "${make[@]}" world-bin
	logged server-install "${make[@]}" install-world-bin DESTDIR="$work/root"
	[[ " ${words[*]} " != *injection* ]] ||
		logged server-injection "${make[@]}" -C src/test/modules/injection_points install DESTDIR="$work/root"
}
