#!/usr/bin/env bash
# Prepares a new PostgreSQL server for Assay: for each service a database and two roles. The owner runs
# migrations; the other role, which the service uses, reads and writes rows.
set -euo pipefail
secrets=${SECRETS:-/run/secrets/postgresql}

for service in identity catalog execution notification; do
    export OWNER_PASSWORD_FILE=$secrets/$service-owner PASSWORD_FILE=$secrets/$service
    psql --no-psqlrc --quiet --username "${POSTGRES_USER:-postgres}" --dbname postgres \
        -v ON_ERROR_STOP=1 -v role="assay_$service" -v owner="assay_${service}_owner" <<'SQL'
\set owner_password `cat "$OWNER_PASSWORD_FILE"`
\set password `cat "$PASSWORD_FILE"`
create role :"owner" login password :'owner_password';
create role :"role" login password :'password';
create database :"role" owner :"owner";
revoke connect, temporary on database :"role" from public;
grant connect on database :"role" to :"role";
\connect :"role"
alter default privileges for role :"owner" in schema public
    grant select, insert, update, delete on tables to :"role";
alter default privileges for role :"owner" in schema public
    grant usage, select on sequences to :"role";
SQL
done
