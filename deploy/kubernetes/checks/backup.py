"""Backups: with a real PostgreSQL, the CronJobs dump the databases and restore them, by the commands of
docs/kubernetes.md."""

import contextlib
import glob
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from .chart import ROOT, component, render
from .programs import skipped

SERVICES = ["execution", "catalog", "notification", "identity"]
KIT = ["events", "work"]

# Stands in for kubectl: runs a CronJob's container, with the variables that are set.
KUBECTL = r"""
kubectl() {
    shift 2
    case "$1 $2" in
    "create job") if [[ $* == *dry-run* ]]; then echo "BACKUP="; else bash "$FOLDER/${3##*-}"; fi ;;
    "set env") sed "s/^BACKUP=.*/${*: -2:1}/" ;;
    "create --filename=-") env "$(cat)" bash "$FOLDER/restore" ;;
    "scale deployment" | "wait "* | "logs "* | "delete job" | "get "*) ;;
    *) echo "kubectl $*: not known" >&2; return 1 ;;
    esac
}
"""


def check(_):
    programs = programs_of_postgresql()
    if not programs:
        yield from skipped("restored", ["initdb"])
        return
    with tempfile.TemporaryDirectory(prefix="assay-backup-") as folder:
        folder = pathlib.Path(folder)
        with server(programs, folder):
            yield from story(Backups(folder))


def programs_of_postgresql():
    """Returns the folder of PostgreSQL's programs, if it is installed."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    found += [path for path in [shutil.which("initdb")] if path]
    return pathlib.Path(found[-1]).parent if found else None


@contextlib.contextmanager
def server(programs, folder):
    """Runs a PostgreSQL server with a socket in the folder, as a user that is not root."""
    user = "postgres" if os.getuid() == 0 else None
    (folder / "server").mkdir()
    folder.chmod(0o755)
    if user:
        shutil.chown(folder / "server", user)
    at = folder / "server"

    def run(*command):
        subprocess.run(command, user=user, cwd=at, check=True, capture_output=True)

    run(programs / "initdb", "--auth=trust", "--username=postgres", "--no-sync", at / "data")
    options = f"-c listen_addresses= -c fsync=off -k {at}"
    control = [programs / "pg_ctl", "--pgdata", at / "data", "--wait"]
    run(*control, "--options", options, "--log", at / "log", "start")
    os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
    try:
        yield
    finally:
        run(*control, "--mode=immediate", "stop")


class Backups:
    """The databases of a bundled installation, with the CronJobs for backups."""

    def __init__(self, folder):
        self.folder, self.backups = folder, folder / "backups"
        self.backups.mkdir()
        rendering = render({"backup": {"enabled": True, "keep": 2}})
        self.secrets = rendering.secrets()
        path = f"{self.noting(['psql', 'pg_dump', 'pg_restore'])}:{os.environ['PATH']}"
        self.env = {**os.environ, "PATH": path, "PGHOST": str(folder / "server"), "POSTGRES_USER": "postgres"}
        passwords = folder / "passwords"
        passwords.mkdir()
        for key, value in self.secrets["assay-postgresql"].items():
            (passwords / key).write_text(value)
        script = next(found for found in rendering.of_kind("ConfigMap"))["data"]["init.sh"]
        self.run("bash", "-c", script, SECRETS=str(passwords))
        for service in SERVICES:
            self.migrate(service)
        pods = {component(labels): pod for _, labels, pod in rendering.pods()}
        for task in ["backup", "restore"]:
            self.write(task, pods[task])

    def noting(self, programs):
        """Returns a folder with programs that note their options, and then do as those of the same names."""
        folder = self.folder / "noting"
        folder.mkdir()
        for program in programs:
            real, file = shutil.which(program), folder / program
            file.write_text(f'#!/bin/sh\necho "$*" >>{self.folder}/options\nexec {real} "$@"\n')
            file.chmod(0o755)
        return folder

    def run(self, *command, **variables):
        subprocess.run(command, env={**self.env, **variables}, check=True, capture_output=True)

    def url(self, service, role="_owner"):
        return f"postgres://assay_{service}{role}@/assay_{service}?host={self.env['PGHOST']}"

    def psql(self, service, statement, role="_owner"):
        """Returns the output of a statement."""
        options = ["--no-psqlrc", "-qAt", "-v", "ON_ERROR_STOP=1", "-c", statement]
        command = ["psql", *options, "-d", self.url(service, role)]
        return subprocess.run(command, env=self.env, check=True, capture_output=True, text=True).stdout

    def migrate(self, service):
        folders = [ROOT / "services" / service, *(ROOT / "services/kit" / name for name in KIT)]
        files = [file for folder in folders for file in folder.glob("migrations/*.sql")]
        files.sort(key=lambda file: int(file.name.split("_")[0]))
        options = ["--no-psqlrc", "-q", "-v", "ON_ERROR_STOP=1"]
        self.run("psql", *options, "-d", self.url(service), *(f"--file={file}" for file in files))

    def write(self, task, pod):
        """Writes a container's script, with its variables and files, for this machine."""
        lines = []
        for variable in pod["containers"][0]["env"]:
            value = variable["value"]
            if found := re.match(r"/run/secrets/assay/(\w+)-database-url$", value):
                value = str(self.folder / f"{found[1]}-url")
                pathlib.Path(value).write_text(self.url(found[1]).replace("@", ":hid%64en@"))
            lines.append(f"export {variable['name']}='{value}'")
        lines.append(f"export BACKUPS={self.backups}")
        (self.folder / task).write_text("\n".join([*lines, pod["containers"][0]["args"][0]]))

    def kubectl(self, number):
        """Runs a block of commands in the document, numbered from 0. Returns whether it was successful."""
        text = (ROOT / "docs/kubernetes.md").read_text().partition("\n### Restoring a dump\n")[2]
        block = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)[number]
        block = block.replace("2026-11-27T020000Z", min(self.folders(), default=""))
        command = ["bash", "-euo", "pipefail", "-c", f"{KUBECTL}\n{block}"]
        env = {**self.env, "FOLDER": str(self.folder)}
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        return done.returncode == 0, done.stdout + done.stderr

    def backup(self):
        self.run("bash", str(self.folder / "backup"))

    def folders(self):
        return [path.name for path in self.backups.iterdir()]

    def contents(self):
        """Returns the schema, the rows and the privileges of all databases."""
        dumps = []
        for service in SERVICES:
            command = ["pg_dump", "-d", self.url(service)]
            dump = subprocess.run(command, env=self.env, check=True, capture_output=True, text=True)
            # Newer versions begin and end with a random key.
            dumps.append(re.sub(r"^\\(un)?restrict .*", "", dump.stdout, flags=re.M))
        return dumps

    def add(self, noun):
        for service in SERVICES:
            self.psql(
                service,
                "insert into outbox (event_id, customer_id, record, noun, action, data, trace)"
                f" values (gen_random_uuid(), gen_random_uuid(), '', '{noun}', '', '{{}}', '{{}}')",
                role="",
            )


def story(backups):
    backups.add("first")
    first = backups.contents()
    backups.backup()
    backups.add("second")
    second = backups.contents()
    backups.backup()
    if len(backups.folders()) != 2:
        yield f"two dumps are in {backups.folders()}"
    backups.add("third")
    third = backups.contents()

    # A program that still runs keeps its data.
    statements = ["-c", "select 1", "-c", "select pg_sleep(60)"]
    command = ["psql", "-d", backups.url("identity", role=""), *statements]
    running = subprocess.Popen(command, env=backups.env, stdout=subprocess.PIPE)
    running.stdout.readline()
    done, output = backups.kubectl(0)
    running.kill()
    running.wait()
    backups.psql(
        "identity",
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
        " where usename = current_user and pid <> pg_backend_pid()",
        role="",
    )
    if done or "stop the programs first" not in output:
        yield f"a database is restored while a program uses it: {output}"
    if backups.contents() != third:
        yield "a restore that was refused has changed a database"

    backups.psql("catalog", "drop table outbox cascade; create table later ()")
    for number, wanted, name in [(0, second, "latest"), (1, first, "chosen")]:
        done, output = backups.kubectl(number)
        if not done:
            yield f"the {name} dump is not restored: {output}"
        elif backups.contents() != wanted:
            yield f"the {name} dump is not restored as it was"
    options = (backups.folder / "options").read_text()
    if "_owner@" not in options or "hid" in options:
        yield "the password of a database is an option of a process"
    backups.add("after a restore, by the role of the service")
    backups.backup()
    if len(backups.folders()) != 2:
        yield f"old dumps are not removed: {backups.folders()}"
