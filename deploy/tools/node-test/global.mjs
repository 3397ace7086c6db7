// A setup and teardown of the run, of which the latter fails.
export function globalSetup() {
  console.log("global setup");
}
export function globalTeardown() {
  throw new Error("global teardown");
}
