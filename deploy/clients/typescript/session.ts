// A session that every generated client has to complete: it uploads reports and files, reads them back,
// reads a list page by page, and is refused once.
//
//   ASSAY_PASSWORD=… node <client>.js URL EMAIL DIRECTORY
//
// The directory has the files `junit.xml`, `report.zip` and `all.bin`. Whatever is read back is written to
// its subdirectory `read`, so that others can compare the bytes.

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { argv, env } from "node:process";

export interface Credentials {
  baseUrl: string;
  email: string;
  password: string;
}

export interface Page {
  names: string[];
  /** The `Link` header, which has the cursor of the next page. */
  link: string | null | undefined;
}

export interface Refusal {
  status: number;
  code: string;
  pointers: string[];
}

/** Parameters of the link to a file. */
export interface FileLink {
  artifactId: string;
  name: string;
  customer: string;
  expires: number;
  signature: string;
}

/** What the session needs of a client. */
export interface Client {
  createProject(name: string): Promise<string>;
  /** Tries to create a project without a name, and returns how it is refused. */
  createNamelessProject(): Promise<Refusal>;
  createTestSet(projectId: string, name: string): Promise<string>;
  /** Returns the id of the execution, and the number of its tests. */
  uploadReport(projectId: string, testSetId: string, report: File): Promise<[string, number]>;
  exportJUnit(executionId: string): Promise<Blob>;
  startExecution(projectId: string, testSetId: string): Promise<string>;
  uploadArtifact(executionId: string, name: string, file: File): Promise<void>;
  /** Returns the links to the files of an execution by their names. */
  listArtifacts(executionId: string): Promise<Record<string, string>>;
  download(link: FileLink): Promise<Blob>;
  listTestCases(projectId: string, limit: number, cursor?: string): Promise<Page>;
}

function expect(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(what);
}

function fileLink(uri: string): FileLink {
  const url = new URL(uri);
  const [artifactId = "", name = ""] = url.pathname.split("/").slice(-2);
  const query = (name: string) => url.searchParams.get(name) ?? "";
  const [customer, signature] = [query("customer"), query("signature")];
  return { artifactId, name, customer, expires: Number(query("expires")), signature };
}

function cursor(link: string | null | undefined): string | undefined {
  const uri = link?.match(/<([^>]*)>; rel="next"/)?.[1];
  return uri ? (new URL(uri, "http://assay").searchParams.get("cursor") ?? undefined) : undefined;
}

async function allTestCases(client: Client, projectId: string): Promise<string[]> {
  const names: string[] = [];
  let next: string | undefined;
  do {
    const page = await client.listTestCases(projectId, 2, next);
    expect(page.names.length > 0 && page.names.length <= 2, "a page has one or two test cases");
    names.push(...page.names);
    next = cursor(page.link);
  } while (next);
  return names;
}

/** Runs the session with the client that `connect` returns. */
export async function session(connect: (as: Credentials) => Promise<Client>): Promise<void> {
  const [, , baseUrl, email, directory] = argv;
  const password = env["ASSAY_PASSWORD"];
  if (!baseUrl || !email || !directory || !password) {
    throw new Error("usage: ASSAY_PASSWORD=… node <client>.js URL EMAIL DIRECTORY");
  }
  const read = join(directory, "read");
  await mkdir(read, { recursive: true });
  const keep = async (name: string, file: Blob) =>
    writeFile(join(read, name), Buffer.from(await file.arrayBuffer()));
  const file = async (name: string) => new File([await readFile(join(directory, name))], name);

  const client = await connect({ baseUrl, email, password });
  const projectId = await client.createProject("Web shop");
  const testSetId = await client.createTestSet(projectId, "Nightly");

  const [execution, tests] = await client.uploadReport(projectId, testSetId, await file("junit.xml"));
  const [, archived] = await client.uploadReport(projectId, testSetId, await file("report.zip"));
  expect(tests > 2 && archived > 0, "both reports have tests");
  await keep("export.xml", await client.exportJUnit(execution));

  const cases = await allTestCases(client, projectId);
  expect(new Set(cases).size === cases.length && cases.length >= tests, "each test case is listed once");

  const running = await client.startExecution(projectId, testSetId);
  for (const name of ["junit.xml", "report.zip", "all.bin"]) {
    await client.uploadArtifact(running, name, await file(name));
  }
  const links = await client.listArtifacts(running);
  for (const [name, uri] of Object.entries(links)) {
    await keep(name, await client.download(fileLink(uri)));
  }

  const refusal = await client.createNamelessProject();
  expect(refusal.status === 422 && refusal.code === "invalid", JSON.stringify(refusal));
  expect(refusal.pointers.join() === "/Name", JSON.stringify(refusal));
  console.log(`${execution} ${projectId} ${tests} tests, ${archived} in an archive, ${cases.length} test cases`);
}
