#!/usr/bin/env bash
# pgindent.sh SOURCE PG_CONFIG FOLDER [--fix]: is the C code as PostgreSQL's pgindent leaves it?  SOURCE is PostgreSQL's
# source, 16 or newer, with its pgindent; PG_CONFIG that of a server to build pg_bsd_indent with, in FOLDER, a temporary
# one that is made if need be: neither PostgreSQL's source nor this project's.  Names of types are in common/typedefs.list.
set -euo pipefail
source=$1
config=$2
folder=$3
mode=${4:---check}
tools=$source/src/tools
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p "$folder"
if [[ $folder -ef $source || $folder -ef . ]]; then
	echo "pgindent.sh: $folder has source; name a temporary folder" >&2
	exit 2
fi
indent=$folder/pg_bsd_indent
cc -O1 -w '-Dpg_noreturn=__attribute__((noreturn))' -I"$tools/pg_bsd_indent" -I"$("$config" --includedir-server)" \
	"$tools"/pg_bsd_indent/{args,err,indent,io,lexi,parse,pr_comment}.c -o "$indent" \
	-L"$("$config" --libdir)" -L"$("$config" --pkglibdir)" -lpgcommon -lpgport -lm
mapfile -t files < <(git ls-files '*.c' '*.h')
case $mode in
--fix) "$tools/pgindent/pgindent" --typedefs=common/typedefs.list --indent="$indent" "${files[@]}" ;;
*)
	"$tools/pgindent/pgindent" --typedefs=common/typedefs.list --indent="$indent" --diff --check "${files[@]}" || {
		echo "run test/pgindent.sh with --fix"
		exit 1
	}
	echo "${#files[@]} files"
	;;
esac
