"""Tests docker-compose.yml: builds, starts, uses, kills and restarts the containers.

Needs Linux, Docker with BuildKit, and Compose. Run with `make test-compose`; removes what it starts.
"""

import os
import re
import socket
import subprocess
import time

from client import Client
from containers import PASSWORD, PROGRAMS, ROOT, SERVERS, Containers, run
from load import Load

# Maximum size of an image, in bytes.
MAX_IMAGE_BYTES = 60_000_000

# Tag of existing images of the previous release, from which to upgrade.
PREVIOUS = os.environ.get("ASSAY_PREVIOUS", "latest")


def reads(project):
    """Returns a path that reads from each service."""
    return {
        "identity": "/api/management/customers/current",
        "catalog": "/api/projects",
        "execution": f"{project}/executions",
        "notification": "/api/notifications?limit=1",
    }


def say(text):
    print(f"compose: {text}", flush=True)


def expect(condition, text):
    if not condition:
        raise SystemExit(f"compose: FAILED: {text}")


def eventually(what, look, seconds=30):
    began = time.monotonic()
    while not (found := look()):
        expect(time.monotonic() - began < seconds, f"{what}: not within {seconds} s")
        time.sleep(0.1)
    return found, time.monotonic() - began


def build(containers):
    began = time.monotonic()
    containers.compose("build", *PROGRAMS, "assay")
    say(f"built in {time.monotonic() - began:.0f} s")
    for program in PROGRAMS:
        size, user = run(
            "docker", "image", "inspect", f"assay/{program}", "--format", "{{.Size}} {{.Config.User}}"
        ).split()
        expect(int(size) < MAX_IMAGE_BYTES, f"the image of {program} has {size} bytes")
        expect(user == "65532:65532", f"{program} runs as {user}")
        say(f"{program}: {int(size) / 1e6:.1f} MB")


def start(containers):
    """Starts the programs first, and their servers last."""
    began = time.monotonic()
    containers.compose("up", "--detach", "--scale", "gateway=2", *PROGRAMS)
    containers.compose("up", "--detach", "--scale", "gateway=2", *SERVERS)
    containers.wait_until_healthy([*PROGRAMS, *SERVERS])
    say(f"started in {time.monotonic() - began:.0f} s, the servers after the programs")
    published = run("docker", "ps", "--filter", f"name={containers.name}", "--format", "{{.Ports}}")
    ports = re.findall(r"(\S+):\d+->(\d+)", published)
    expect(set(ports) == {("127.0.0.1", "8080")}, f"published: {ports}")


def session(port):
    """Runs the commands of the README's first session."""
    text = (ROOT / "README.md").read_text().split("## A first session")[1].split("\n## ")[0]
    script = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.S))
    script = script.replace("'…'", f"'{PASSWORD}'").replace("127.0.0.1:8080", f"127.0.0.1:{port}")
    done = subprocess.run(["bash", "-euo", "pipefail"], input=script, text=True, cwd=ROOT,
                          capture_output=True)
    expect(not done.returncode, f"the README's session: {done.stdout[-2000:]}{done.stderr}")
    expect('"Result": "Failed"' in done.stdout, f"the README's session shows {done.stdout[-2000:]}")
    say("the README's session works")


def story(client):
    """Uploads a report and follows it through all services; returns the project."""
    project = f"/api/projects/{client.ok('POST', '/api/projects', {'Name': 'Rocket'})['Id']}"
    tests = client.ok("POST", f"{project}/testsets", {"Name": "Every commit"})["Id"]
    report = (ROOT / "docs/first-session/junit.xml").read_text()
    execution = client.ok("POST", f"{project}/testsets/{tests}/results", report, "application/xml")
    log = f"{project}/executions/{execution['Id']}"
    expect(client.ok("GET", log)["TestReports"], "the execution has no reports")
    eventually("the catalog shows results", lambda: all(
        case["LastResult"] for case in client.ok("GET", f"{project}/testcases?limit=5")))
    eventually("a notification exists", lambda: client.ok("GET", "/api/notifications?source=TestSet"))
    say("a report has passed through all services")
    return project


def outage(containers, client, project, service):
    """Kills a container under load and restarts it."""
    paths = reads(project)
    with Load(client, project, paths.values()) as load:
        eventually("the load", lambda: all(load.statuses.values()))
        containers_of = containers.of(service)
        run("docker", "kill", *containers_of)
        load.forget()
        time.sleep(4)
        hit = [name for name in paths if name == service or service == "postgres"]
        for name, path in paths.items():
            seen = load.seen(path)
            expected = {503} if name in hit else {200}
            # Calls in progress when the container was killed may have succeeded.
            expect(seen and seen <= expected | {200} and (name in hit) == (503 in seen),
                   f"{service} is down: {name} gives {seen}")
            expect(load.slowest(path, 503) < 3, f"503 takes {load.slowest(path, 503):.1f} s")
        run("docker", "start", *containers_of)
        started = time.monotonic()
        load.forget()
        affected = [paths[name] for name in hit] or ["write"]
        eventually("it to work again", lambda: all(
            200 in load.seen(path) or 201 in load.seen(path) for path in affected))
        back = time.monotonic() - started
    expect(not load.broken, f"{service} is down: {load.broken[:3]}")
    containers.wait_until_healthy([service])
    expect(not load.lost(), f"{len(load.lost())} acknowledged test cases are lost")
    kept = len(load.acknowledged)
    say(f"{service} killed: back {back:.1f} s after its start, {kept} writes kept")


def roll(containers, client, project):
    """Restarts each of two gateways under load."""
    paths = reads(project)
    with Load(client, project, [paths["identity"], paths["catalog"]]) as load:
        eventually("the load", lambda: all(load.statuses.values()))
        for gateway in containers.of("gateway"):
            run("docker", "stop", "--time", "30", gateway)
            run("docker", "start", gateway)
            containers.wait_until_healthy(["gateway"])
    expect(not load.failures(), f"rolling fails requests: {load.failures()[:3]}")
    say(f"both gateways restarted, none of {load.count()} requests failed")


def upgrade(containers, client, project):
    """Replaces one program after the other with the next release, under load."""
    with Load(client, project, reads(project).values()) as load:
        eventually("the load", lambda: all(load.statuses.values()))
        for program in PROGRAMS:
            replaced = containers.replace(program, "latest")
            client.replicas = containers.gateways()
            for container in replaced:
                run("docker", "stop", "--time", "30", container)
                run("docker", "rm", container)
            client.replicas = containers.gateways()
    expect(not load.failures(), f"an upgrade fails requests: {load.failures()[:3]}")
    expect(not load.lost(), f"{len(load.lost())} acknowledged test cases are lost")
    story(client)
    say(f"all programs upgraded from {PREVIOUS}, none of {load.count()} requests failed")


# The first part of an upgrade: adds a column to every table.
EXPAND = """
for service in identity catalog execution notification; do
  docker compose exec -T postgres psql --quiet --username=postgres --dbname=assay_$service \\
    --set=ON_ERROR_STOP=1 << 'SQL'
select format('alter table %s add column of_the_next_release text', oid::regclass) from pg_class
where relkind in ('r', 'p') and not relispartition and relnamespace = 'public'::regnamespace \\gexec
insert into _sqlx_migrations (version, description, success, checksum, execution_time)
values (99999999999999, 'of the next release', true, '', 0);
SQL
done
"""


def expand(containers, client, project):
    """Migrates the databases as the next release would: this release keeps running and can restart."""
    with Load(client, project, reads(project).values()) as load:
        eventually("the load", lambda: all(load.statuses.values()))
        containers.script(EXPAND)
    expect(not load.failures(), f"migrating fails requests: {load.failures()[:3]}")
    containers.compose("restart", *PROGRAMS)
    containers.wait_until_healthy(PROGRAMS)
    client.replicas = containers.gateways()
    story(client)
    say("the databases were migrated under load, and this release runs on them")


def replica(containers, client, project):
    """Kills one of two catalogs; reads do not fail."""
    scale = ["--scale", "gateway=2", "--scale", "catalog=2"]
    containers.compose("up", "--detach", *scale, *PROGRAMS)
    containers.wait_until_healthy(["catalog"])
    path = reads(project)["catalog"]
    with Load(client, project, [path]) as load:
        eventually("the load", lambda: all(load.statuses.values()))
        run("docker", "kill", containers.of("catalog")[0])
        time.sleep(3)
    seen = load.seen(path)
    expect(seen == {200} and not load.broken, f"one of two catalogs is killed: {seen}")
    expect(not load.lost(), f"{len(load.lost())} acknowledged test cases are lost")
    say(f"one of two catalogs killed: all of {len(load.statuses[path])} reads answered")


def restore(containers, client, project):
    """Runs the commands for dumps and their restore in docs/operations.md."""
    guide = (ROOT / "docs/operations.md").read_text()
    part = guide.split("### Dumps")[1].split("\n### ")[0]
    backup, back, follow, compare = re.findall(r"```sh\n(.*?)```", part, re.S)
    with Load(client, project, [reads(project)["catalog"]]) as load:
        eventually("the load", lambda: load.acknowledged)
        kept = set(load.acknowledged)
        began = time.monotonic()
        containers.script(backup)
        took = time.monotonic() - began
    containers.compose("down", "--volumes")
    began = time.monotonic()
    containers.script(back)
    containers.wait_until_healthy([*PROGRAMS, *SERVERS])
    say(f"backed up under load in {took:.0f} s, restored in {time.monotonic() - began:.0f} s")
    containers.script(follow)
    eventually("no differences", lambda: "No differences" in containers.script(f"{compare.rstrip()} || true"))
    client = Client(containers.gateways()).log_in()
    there = {case["Id"] for case in client.ok("GET", f"{project}/testcases")}
    expect(kept <= there, f"{len(kept - there)} test cases from before the backup are missing")
    say("everything before the backup is restored, and new writes work:")
    story(client)


def free_port():
    """Returns the first of two adjacent ports that nothing listens on."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


def main():
    first = free_port()
    ports = f"{first}-{first + 1}"
    with Containers(ports) as containers:
        build(containers)
        start(containers)
        session(first)
        client = Client(containers.gateways()).log_in()
        project = story(client)
        for service in ["catalog", "execution", "notification", "identity", "nats", "postgres"]:
            outage(containers, client, project, service)
        roll(containers, client, project)
        expand(containers, client, project)
        replica(containers, client, project)
        restore(containers, client, project)
    with Containers(ports, PREVIOUS) as containers:
        containers.compose("up", "--detach", "--no-build")
        containers.wait_until_healthy([*PROGRAMS, *SERVERS])
        client = Client(containers.gateways()).log_in()
        upgrade(containers, client, story(client))
    say("all tests passed")


main()
