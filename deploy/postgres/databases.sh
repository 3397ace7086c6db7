#!/bin/sh
# The PostgreSQL image runs this once, on an empty volume. Creates a database for each service, owned by
# a role of its own with the password in ASSAY_<SERVICE>_DB_PASSWORD.
set -eu

for service in identity catalog execution notification; do
    variable=ASSAY_$(echo "$service" | tr '[:lower:]' '[:upper:]')_DB_PASSWORD
    eval "PASSWORD=\${$variable:?}"
    # Not as an option: others see the options of a process.
    export PASSWORD
    psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
        --set role="assay_$service" <<'SQL'
\set password `printf %s "$PASSWORD"`
create role :"role" login password :'password';
create database :"role" owner :"role";
revoke connect on database :"role" from public;
SQL
done
