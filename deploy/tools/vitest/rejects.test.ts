// An error that no test has caught fails the run.
import { test } from "vitest";

test("passes before an unhandled rejection", () => {
  Promise.reject(new Error("unhandled"));
});
