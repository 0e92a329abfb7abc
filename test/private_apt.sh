# What fetches packages reads this file: apt with a configuration of its own, so that the machine's sources, lists and keys
# stay as they are.  "work" is an empty folder; begin_apt comes first, and goes there.

die() { printf '%s\n' "$*" >&2; exit 1; }

# Where the machine has packages from that were made by Debian or PostgreSQL: address, suite, component, origin, key.
own_repositories() {
	local uri suite component origin key
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN) $(SIGNED_BY)' 'Identifier: Packages' |
		while read -r uri suite component origin key; do
			[[ $origin == Debian || $origin == apt.postgresql.org ]] || continue
			[[ $key == /* ]] || key=/usr/share/keyrings/debian-archive-keyring.gpg
			echo "$uri $suite $component $origin $key"
		done | sort -u
}

# debian_suite TYPE SUITE: the lines for another suite of Debian, on the mirrors that the machine uses.
debian_suite() {
	local uri suite component origin key
	while read -r uri suite component origin key; do
		[[ $origin == Debian && $component == main ]] || continue
		case $suite in
		*-security) [[ $2 == sid || $2 == experimental ]] || echo "$1 [signed-by=$key] $uri $2-security main" ;;
		*-*) ;;
		*) echo "$1 [signed-by=$key] $uri $2 main" ;;
		esac
	done <<<"$own" | sort -u
}

# From here on apt knows only the sources that come on stdin.  One that does not answer may not be the one needed.
private_apt() {
	cat >"$work/sources.list"
	apt-get -q update >&2 || true
}

# begin_apt [lines of apt.conf]
begin_apt() {
	own=$(own_repositories)
	[[ -n $own ]] || die "no package lists here; run apt-get update"
	mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
	cat >"$work/apt.conf" <<-CONF
		Dir::Etc::sourcelist "$work/sources.list";
		Dir::Etc::sourceparts "-";
		Dir::State::lists "$work/lists";
		Dir::Cache "$work/cache";
		Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
		APT::Sandbox::User "root";
		$(printf '%s\n' "$@")
	CONF
	export APT_CONFIG=$work/apt.conf
	cd "$work"
}
