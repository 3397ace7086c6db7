import { defineConfig } from "@playwright/test";

const { GLOBAL, PROJECTS = "one" } = process.env;

export default defineConfig({
  testDir: "tests",
  testIgnore: process.env.BROKEN ? [] : ["broken.spec.ts"],
  outputDir: "results",
  workers: 2,
  // Attempts of tests are in the reports, whose paths are relative to this folder.
  reporter: [
    ["list"],
    ["json", { outputFile: "report.json" }],
    ["junit", { outputFile: "junit.xml", includeProjectInTestName: false }],
    ["blob", { outputFile: "blob.zip" }],
    ["playwright-ctrf-json-reporter", { outputDir: ".", outputFile: "ctrf.json" }],
  ],
  globalSetup: GLOBAL === "setup" ? "./setup.ts" : undefined,
  globalTeardown: GLOBAL === "teardown" ? "./teardown.ts" : undefined,
  use: { launchOptions: { executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] } },
  projects: PROJECTS.split(",").map((name) => ({ name, metadata: { engine: name } })),
});
