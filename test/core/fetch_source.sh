#!/usr/bin/env bash
# fetch_source.sh VERSION FOLDER: PostgreSQL's regression and isolation suites and those of contrib, from the distribution's source package.
# Prints the folder of the unpacked source.  Takes exactly VERSION (15.9) where it can be had, else the newest of its major
# version.  apt gets a configuration of its own: the machine's sources, lists and keys stay as they are.
set -euo pipefail
version=$1
folder=$2
package=postgresql-${version%%.*}

unpacked() { find "$folder" -maxdepth 2 -path "*/postgresql-$1/contrib" -printf '%h\n' | sort -V | tail -n 1; }

# The choice is remembered, so that apt is asked once.
mkdir -p "$folder"
if [[ -d $folder/for-$version/contrib ]]; then
	realpath "$folder/for-$version"
	exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"

# The repositories that binaries of PostgreSQL may come from, as deb-src lines.
repositories() {
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN) $(SIGNED_BY)' 'Identifier: Packages' |
		while read -r uri release component origin key; do
			[[ $origin == Debian || $origin == apt.postgresql.org ]] || continue
			[[ $key == /* ]] || key=/usr/share/keyrings/debian-archive-keyring.gpg
			echo "deb-src [signed-by=$key] $uri $release $component"
		done | sort -u
}

repositories >"$work/sources.list"
[[ -s $work/sources.list ]] || {
	echo "no package lists here; run apt-get update" >&2
	exit 1
}
cat >"$work/apt.conf" <<-CONF
	Dir::Etc::sourcelist "$work/sources.list";
	Dir::Etc::sourceparts "-";
	Dir::State::lists "$work/lists";
	Dir::Cache "$work/cache";
	APT::Sandbox::User "root";
CONF
export APT_CONFIG=$work/apt.conf
cd "$work"
apt-get -q update >&2
available=$(apt-cache showsrc "$package" | sed -n 's/^Version: //p' | sort -rVu)

# An index may name files that the mirror does not have (any more): then the next version.
for candidate in $(grep -E "^$version[-+~]" <<<"$available") $available; do
	found=$(unpacked "${candidate%%[-+~]*}")
	if [[ -z $found ]] && apt-get -q source --download-only "$package=$candidate" >&2; then
		tar -C "$folder" -xf "$package"_*.orig.tar.* --wildcards '*/src/test/regress' '*/src/test/isolation' '*/contrib'
		found=$(unpacked "${candidate%%[-+~]*}")
	fi
	[[ -z $found ]] || break
done
[[ -n $found ]] || {
	echo "no source of $package to be had" >&2
	exit 1
}
ln -sfn "$(basename "$found")" "$folder/for-$version"
echo "$found"
