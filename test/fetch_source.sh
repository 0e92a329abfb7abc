#!/usr/bin/env bash
# fetch_source.sh VERSION FOLDER: PostgreSQL's source from a distribution's source package; prints the folder, below
# FOLDER, that it is unpacked in.  VERSION 17 means the newest 17 to be had; of 15.9 exactly that is taken where it can
# be had, else the newest 15.  The name of an extension's package, postgresql-rum, gets the newest source of that.  apt
# gets a configuration of its own: the machine's sources, lists and keys stay as they are.
set -euo pipefail
version=$1
folder=$2
found=						# the folder of the source, once there is one
major=${version%%.*}
package=postgresql-$major
stem=postgresql
mark=configure					# a file of its top folder
if [[ $version == postgresql-* ]]; then
	package=$version
	stem=${version#postgresql-}
	mark=Makefile
	major=$version
	version=
fi
# For a major version that only Ubuntu has kept, or that Debian's mirrors do not have just now.
UBUNTU_MIRROR=${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}

source "$(dirname "${BASH_SOURCE[0]}")/private_apt.sh"

# ---- repositories ----------------------------------------------------------

# Ubuntu's key, out of Debian's package of it, so that Debian's signature vouches for it.
ubuntu_key() {
	local key=usr/share/keyrings/ubuntu-archive-keyring.gpg
	if [[ -e /$key ]]; then
		echo "/$key"
		return
	fi
	debian_suite deb trixie | private_apt
	(cd "$work" && apt-get -q download ubuntu-keyring >&2 && dpkg-deb -x ubuntu-keyring_*.deb ubuntu) || return
	echo "$work/ubuntu/$key"
}

# ubuntu_release NAME: the lines for a release of Ubuntu.
ubuntu_release() {
	local suite key
	key=$(ubuntu_key) || die "no key to check Ubuntu's packages with"
	for suite in "$1" "$1-updates" "$1-security"; do
		echo "deb-src [signed-by=$key] $UBUNTU_MIRROR $suite main"
	done
}

# What to ask for this major version: the machine's own repositories, then those that have or had it.
source_lines() {
	sed -E 's/^(.*) (.*) (.*) .* (.*)$/deb-src [signed-by=\4] \1 \2 \3/' <<<"$own"
	case $major in
	15) debian_suite deb-src bookworm ;;
	16) ubuntu_release noble ;;
	17) debian_suite deb-src trixie ;;
	19) debian_suite deb-src sid && debian_suite deb-src experimental ;;
	*) debian_suite deb-src sid ;;
	esac
}

# And where these do not have it: a mirror may lack, for hours, what its index names already.
other_lines() {
	[[ $major != 17 ]] || ubuntu_release questing
}

# ---- the source ------------------------------------------------------------

unpacked() { find "$folder" -maxdepth 2 -path "$folder/$stem-$1/$mark" -printf '%h\n'; }

# unpack TARBALL: under its own name only when it is whole.
unpack() {
	mkdir "$folder/.new"
	tar -C "$folder/.new" --no-same-owner --no-same-permissions -xf "$1"
	mv "$folder/.new/$stem"-* "$folder"
	rmdir "$folder/.new"
}

# The version of a package's tarball: 17.6 of 17.6-0ubuntu0.24.04.1, 19rc1 of 19~rc1-1.
upstream() {
	local version=${1%%[-+]*}
	case $version in
	*~rc[0-9]*) echo "${version/\~/}" ;;
	*) echo "${version%%~*}" ;;
	esac
}

# An index may name files that the mirror does not have (any more): then the next version.
newest_source() {
	local available candidate
	available=$(apt-cache showsrc "$package" 2>/dev/null | sed -n 's/^Version: //p' | sort -rVu)
	for candidate in $(grep -E "^$version[-+~]" <<<"$available") $available; do
		[[ $candidate != *~beta* ]] || continue	# what a beta has may not be in the release, and the other way round
		found=$(unpacked "$(upstream "$candidate")")
		if [[ -z $found ]] && apt-get -q source --download-only --tar-only "$package=$candidate" >&2; then
			unpack "$package"_*.orig.tar.*
			found=$(unpacked "$(upstream "$candidate")")
		fi
		[[ -z $found ]] || return 0
	done
	return 1
}

umask 022
mkdir -p "$folder"
folder=$(realpath "$folder")
exec {lock}>"$folder/lock"
flock "$lock"
# The choice for an exact version is remembered, so that apt is asked once; of an extension, any version is good.
for known in "$folder/$stem-"${version:-*} "$folder/for-$version"; do
	[[ ! -e $known/$mark ]] || {
		realpath "$known"
		exit
	}
done
work=$(mktemp -d)
trap 'rm -rf "$work" "$folder/.new"' EXIT
rm -rf "$folder/.new"
begin_apt
for lines in source_lines other_lines; do
	lines=$($lines)
	[[ -n $lines ]] || die "no source of $package to be had"
	private_apt <<<"$lines"
	! newest_source || break
done
[[ -n $found ]] || die "no source of $package to be had"
[[ -z $version || $version == "$major" ]] || ln -sfn "$(basename "$found")" "$folder/for-$version"
echo "$found"
