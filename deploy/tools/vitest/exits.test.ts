// Its process dies.
import { test } from "vitest";

test("aborts", () => {
  process.abort();
});
