#!/usr/bin/env bash
# fetch_server.sh MAJOR ROOT: a server of a version that no source package is to be had of, from Debian's binary packages
# (sid, experimental), in a folder of its own, ROOT, which must not exist.  Its programs get the C library and the other
# libraries that they were made for, which are put there, too: so they run on this machine, though it has older ones.
# What the machine has installed stays as it is.  Needs patchelf.
set -euo pipefail
major=$1
root=$2
source "$(dirname "${BASH_SOURCE[0]}")/private_apt.sh"
umask 022
mkdir -p "$(dirname "$root")"
root=$(cd "$(dirname "$root")" && pwd)/${root##*/}
[[ ! -e $root ]] || die "$root is there already"
new=$(mktemp -d "${root%/*}/.$major.XXXXXX")	# as run.sh removes them if one is left over
work=$(mktemp -d)
trap 'rm -rf "$work" "$new"' EXIT
chmod 755 "$new"

# ---- packages --------------------------------------------------------------

# As if nothing were installed, so that all libraries come along.
touch "$work/status"
begin_apt "Dir::State::status \"$work/status\";" "Dir::Log \"$work\";" 'Debug::NoLocking "true";' \
	'APT::Install-Recommends "false";' 'APT::Get::AllowUnauthenticated "false";' 'Acquire::Languages "none";'
{ debian_suite deb sid && debian_suite deb experimental; } | private_apt
version=$(apt-cache madison "postgresql-$major" | awk '{ print $3 }' | sort -rV | head -n 1)
[[ -n $version ]] || die "no package postgresql-$major"
# by version: with the suite's name apt would take all else from experimental, too
apt-get -q install -y --download-only {"postgresql-$major","postgresql-client-$major",libpq5}="$version" >&2
# this one depends on a whole compiler
(cd "$work/cache/archives" && apt-get -q download "postgresql-server-dev-$major=$version" >&2)
for file in "$work"/cache/archives/*.deb; do
	case ${file##*/} in
	lib*-perl_* | libperl* | libsystemd-shared_* | libpam*-bin_*) ;;
	lib* | zlib1g_* | postgresql-"$major"_* | postgresql-client-"$major"_* | postgresql-server-dev-"$major"_*) dpkg-deb -x "$file" "$new" ;;
	esac
done

# ---- programs that find their libraries ------------------------------------

libraries=usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
loader=$(cd "$new" && echo "$libraries"/ld-linux*.so.* | cut -d ' ' -f 1)
[[ -x $new/$loader ]] || die "no loader in the packages"
while read -r file; do
	if patchelf --print-interpreter "$file" >/dev/null 2>&1; then
		patchelf --set-interpreter "$root/$loader" --force-rpath --set-rpath "$root/$libraries" "$file"
	fi
done < <(find "$new/usr/lib/postgresql" -type f -perm -u+x ! -name '*.so*')

# ---- for extensions' makefiles ---------------------------------------------

# Without bitcode, and without options that the packages' compiler had and this one has not.
makefile=$new/usr/lib/postgresql/$major/lib/pgxs/src/Makefile.global
sed -i -E 's/^(with_llvm[[:space:]]*=).*/\1 no/' "$makefile"
for option in $(grep -E '^(CFLAGS|CXXFLAGS|CPPFLAGS|LDFLAGS)[A-Z_]*[[:space:]]*=' "$makefile" | grep -oE -- ' -[fmW][^ ]*' | sort -u); do
	gcc -Werror "$option" -fsyntax-only -x c - </dev/null 2>/dev/null ||
		sed -i -E "s#^([A-Z_]*FLAGS[A-Z_]*[[:space:]]*=.*) $option( |\$)#\\1\\2#" "$makefile"
done
# Functions that this machine's C library does not declare are there when a library is loaded.
for function in strlcat strlcpy; do
	gcc -D_GNU_SOURCE -Werror -fsyntax-only -x c - <<<"#include <string.h>
		void *f = $function;" 2>/dev/null ||
		sed -i "s/^#define HAVE_DECL_${function^^} 1/#define HAVE_DECL_${function^^} 0/" "$new/usr/include/postgresql/$major/server/pg_config.h"
done
find "$new" -perm /6000 -exec chmod ug-s {} +
# their paths are those of the place that it will have
mv "$new" "$root"
"$root/usr/lib/postgresql/$major/bin/postgres" --version >&2 || {
	rm -rf "$root"
	die "this machine cannot run the server of the packages"
}
