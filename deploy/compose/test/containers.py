"""The containers of an Assay installation, from the repository's docker-compose.yml."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]

PROGRAMS = ["gateway", "identity", "catalog", "execution", "notification"]

SERVERS = ["postgres", "nats"]

PASSWORD = "a long enough passphrase"


def run(*command, cwd=ROOT, env=None):
    """Returns the output of a command; shows it and exits if the command fails."""
    done = subprocess.run(command, text=True, capture_output=True, cwd=cwd, env=env)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout


class Containers:
    """A Compose project with its own volumes, which is removed at the end."""

    def __init__(self, ports, version="latest"):
        has_plugin = shutil.which("docker") and not subprocess.run(
            ["docker", "compose", "version"], capture_output=True
        ).returncode
        self.folder = tempfile.TemporaryDirectory()
        settings = pathlib.Path(self.folder.name) / ".env"
        text = run("deploy/compose/secrets")
        text = text.replace("ASSAY_PORT=8080", f"ASSAY_PORT={ports}")
        text = text.replace("ASSAY_ADMIN_PASSWORD=", f"ASSAY_ADMIN_PASSWORD={PASSWORD}")
        settings.write_text(text)
        self.name = f"assay-test-{os.getpid()}"
        compose = ["docker", "compose"] if has_plugin else ["docker-compose"]
        self.command = [*compose, "--file", f"{ROOT}/docker-compose.yml", "--project-directory",
                        str(ROOT), "--env-file", str(settings), "--project-name", self.name]
        self.env = dict(os.environ, DOCKER_BUILDKIT="1", COMPOSE_DOCKER_CLI_BUILD="1",
                        ASSAY_VERSION=version)

    def compose(self, *arguments):
        return run(*self.command, *arguments, env=self.env)

    def script(self, text):
        """Runs commands of the documentation in the folder with this project's `.env`."""
        text = text.replace("docker compose", " ".join(self.command))
        return run("bash", "-euo", "pipefail", "-c", text, env=self.env, cwd=self.folder.name)

    def of(self, service):
        """Returns the ids of the containers of a service."""
        label = f"label=com.docker.compose.service={service}"
        project = f"label=com.docker.compose.project={self.name}"
        return run("docker", "ps", "-aq", "--filter", project, "--filter", label).split()

    def replace(self, program, version):
        """Starts a container of another version; returns those it replaces once it is healthy."""
        self.env["ASSAY_VERSION"] = version
        old = self.of(program)
        self.compose("up", "--detach", "--no-build", "--no-deps", "--no-recreate",
                     "--scale", f"{program}={len(old) + 1}", program)
        self.wait_until_healthy([program])
        return old

    def gateways(self):
        """Returns the addresses of the gateways, which are used directly, as by a load balancer."""
        return [self.address(gateway) for gateway in self.of("gateway")]

    def address(self, container):
        form = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        return run("docker", "inspect", "--format", form, container).strip()

    def health(self, container):
        return run("docker", "inspect", "--format", "{{.State.Health.Status}}", container).strip()

    def wait_until_healthy(self, services, seconds=120):
        deadline = time.monotonic() + seconds
        waiting = {container: name for name in services for container in self.of(name)}
        while waiting := {c: name for c, name in waiting.items() if self.health(c) != "healthy"}:
            if time.monotonic() > deadline:
                logs = self.compose("logs", "--tail=30", *set(waiting.values()))
                raise SystemExit(f"not healthy after {seconds} s: {waiting}\n{logs}")
            time.sleep(0.5)

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        if failure:
            print(self.compose("logs", "--tail=15"), file=sys.stderr)
        self.compose("down", "--volumes", "--remove-orphans", "--timeout", "5")
        self.folder.cleanup()
