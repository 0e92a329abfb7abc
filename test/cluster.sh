# Throwaway clusters for shell scripts: a script that reads this file sets BINDIR, and all lies in FOLDER.
#
#	new_folder /tmp/NAME; trap delete_folder EXIT
#	init_cluster "$FOLDER/data" <<<"fsync = off" && start_cluster "$FOLDER/data" && connect_here

# The server and its tests refuse to run as root: root hands them to "postgres".
server_user() { id -un postgres 2>/dev/null || echo nobody; }

as_server() (
	cd "$FOLDER"
	((EUID == 0)) || exec "$@"
	user=$(server_user)
	HOME=$FOLDER exec setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups -- "$@"
)

give_server() { ((EUID != 0)) || chown -R "$(server_user)" "$@"; }

new_folder() {
	FOLDER=$(mktemp -d "$1.XXXXXX")
	give_server "$FOLDER"
}

pg_ctl() { as_server "$BINDIR/pg_ctl" -s "$@" >/dev/null </dev/null; }

# init_cluster DATA [initdb options]: more settings come on stdin.
init_cluster() {
	local data=$1
	shift
	as_server "$BINDIR/initdb" -D "$data" -U postgres -A trust -N --no-locale -E UTF8 "$@" \
		>"$data.initdb" 2>&1 </dev/null || {
		tail -n 20 "$data.initdb" >&2
		return 1
	}
	rm "$data.initdb"
	cat - >>"$data/postgresql.conf" <<-CONF
		listen_addresses = ''
		unix_socket_directories = '$FOLDER'
		$(cat)
	CONF
}

# start_cluster DATA: unless it runs.  The log is FOLDER/server.log, also for several.
start_cluster() {
	pg_ctl -D "$1" status || pg_ctl -D "$1" -l "$FOLDER/server.log" -w start || {
		tail -n 20 "$FOLDER/server.log" >&2
		echo "the server did not start" >&2
		return 1
	}
}

# What the caller's own settings say of another server does not count.
connect_here() {
	unset PGDATA PGHOSTADDR PGOPTIONS PGPASSFILE PGPASSWORD PGSERVICE PGSSLMODE
	export PGHOST=$FOLDER PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
}

# Also servers that an interrupted test has left in the folder.
delete_folder() {
	local file
	while IFS= read -r file; do
		[[ $(readlink "/proc/$(head -n 1 "$file")/cwd") != "${file%/*}" ]] ||
			pg_ctl -D "${file%/*}" -m immediate stop || true
	done < <(find "$FOLDER" -name postmaster.pid)
	rm -rf "$FOLDER"
}
