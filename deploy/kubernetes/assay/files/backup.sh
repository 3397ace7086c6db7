#!/usr/bin/env bash
# Dumps the four databases, one after the other, so that records which one of them refers to are in the
# later ones. The folder of a dump is named after its time, and exists once the dump is complete.
set -euo pipefail
umask 077
backups=${BACKUPS:-/backup}
while folder=$backups/$(date --utc +%Y-%m-%dT%H%M%SZ) && [[ -e $folder ]]; do sleep 1; done

rm -rf "$backups"/*.partial
mkdir "$folder.partial"
for service in execution catalog notification identity; do
    dump=$folder.partial/$service.dump
    connected "$service" pg_dump --format=custom --file="$dump"
    pg_restore --list "$dump" >/dev/null
done
mv "$folder.partial" "$folder"
echo "dumped the databases to $folder: $(du --human-readable --summarize "$folder" | cut --fields=1)"

if ((KEEP > 0)); then
    printf '%s\n' "$backups"/*Z | head --lines="-$KEEP" | while read -r old; do
        rm -r "$old"
        echo "removed $old"
    done
fi
