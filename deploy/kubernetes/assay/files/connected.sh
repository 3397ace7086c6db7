#!/usr/bin/env bash
# The beginning of the scripts for backups and for restoring them.

# Runs a program of PostgreSQL with the database of a service. The secret in its URL becomes a variable: others see
# the options of a process.
connected() {
    local file=${1^^}_URL_FILE url secret
    url=$(<"${!file}")
    if [[ $url =~ ^([^:]+://[^:/@?]*):([^/@]*)@(.*)$ ]]; then
        url=${BASH_REMATCH[1]}@${BASH_REMATCH[3]} secret=${BASH_REMATCH[2]//\\/\\\\}
        printf -v secret %b "${secret//%/\\x}"
    fi
    PGPASSWORD=${secret-${PGPASSWORD-}} "$2" --dbname="$url" "${@:3}"
}
