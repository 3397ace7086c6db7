#!/usr/bin/env bash
# Restores the four databases from a dump: the one in the folder BACKUP, or else the latest one. Replaces
# everything in the databases.
set -euo pipefail
backups=${BACKUPS:-/backup}
dumps=("$backups"/*Z)
folder=${BACKUP:+$backups/$BACKUP}
folder=${folder:-${dumps[-1]}}
services=(execution catalog notification identity)

fail() {
    echo "restore: $*" >&2
    exit 1
}

# Runs a statement in the database of a service.
sql() {
    connected "$1" psql --no-psqlrc --quiet --no-align --tuples-only -v ON_ERROR_STOP=1 --command="$2"
}

# Everything is checked before anything is replaced.
for service in "${services[@]}"; do
    [[ -f $folder/$service.dump ]] || fail "no dump of $service in $folder; there are: ${dumps[*]##*/}"
    pg_restore --list "$folder/$service.dump" >/dev/null
    others=$(sql "$service" "select count(*) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and usename is not null")
    ((others == 0)) || fail "$others connections to the database of $service: stop the programs first"
done
for service in "${services[@]}"; do
    sql "$service" 'drop owned by current_user'
    connected "$service" pg_restore --single-transaction "$folder/$service.dump"
    echo "restored the database of $service from $folder"
done
