"""A session that every generated client has to complete, as in `../typescript/session.ts`.

    ASSAY_PASSWORD=… python <client>.py URL EMAIL DIRECTORY
"""

import os
import re
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit


def file_link(uri):
    """Returns the parameters of the link to a file."""
    url = urlsplit(uri)
    artifact, name = url.path.split("/")[-2:]
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    return artifact, name, query["customer"], int(query["expires"]), query["signature"]


def cursor(link):
    """Returns the cursor of the next page in a `Link` header."""
    found = re.search('<([^>]*)>; rel="next"', link or "")
    return parse_qs(urlsplit(found[1]).query)["cursor"][0] if found else None


def all_test_cases(client, project):
    names, next_page = [], None
    while True:
        page, link = client.list_test_cases(project, 2, next_page)
        assert 0 < len(page) <= 2, page
        names += page
        next_page = cursor(link)
        if next_page is None:
            return names


def session(connect):
    """Runs the session with the client that `connect` returns."""
    url, email, directory = sys.argv[1:]
    directory = Path(directory)
    read = directory / "read"
    read.mkdir(exist_ok=True)
    client = connect(url, email, os.environ["ASSAY_PASSWORD"])

    project = client.create_project("Web shop")
    test_set = client.create_test_set(project, "Nightly")
    execution, tests = client.upload_report(project, test_set, directory / "junit.xml")
    _, archived = client.upload_report(project, test_set, directory / "report.zip")
    assert tests > 2 and archived > 0, (tests, archived)
    (read / "export.xml").write_bytes(client.export_junit(execution))

    cases = all_test_cases(client, project)
    assert len(set(cases)) == len(cases) >= tests, cases

    running = client.start_execution(project, test_set)
    for name in ["junit.xml", "report.zip", "all.bin"]:
        client.upload_artifact(running, name, directory / name)
    for name, uri in client.list_artifacts(running).items():
        (read / name).write_bytes(client.download(*file_link(uri)))

    assert client.create_nameless_project() == (422, "invalid", ["/Name"])
    print(f"{execution} {project} {tests} tests, {archived} in an archive, {len(cases)} test cases")
