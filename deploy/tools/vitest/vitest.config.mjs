import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    // Output as in a terminal, and reports. The attempts of retried tests are in neither.
    reporters: ["default", ["json", { outputFile: "report.json" }], ["junit", { outputFile: "junit.xml" }]],
  },
});
