// All that Vitest can say about a test.

import { existsSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

test("passes", ({ task }) => {
  console.log("to stdout: <b>&amp;</b> ✓");
  console.error("to stderr: \x1b[31mred\x1b[0m");
  task.meta.order = "1 < 2";
});

test("fails", () => {
  expect({ name: "Ann", ünï: "<&>" }).toEqual({ name: "Bob" });
});

test("fails softly twice", () => {
  expect.soft(1).toBe(2);
  expect.soft("<&> ]]>").toBe("line\nbreak");
});

test("throws a text", () => {
  throw "a text";
});

test("throws an error with a cause", () => {
  throw new Error("outer\nsecond line", { cause: new TypeError("inner") });
});

test("hangs", { timeout: 100 }, () => new Promise(() => {}));
test.skip("is skipped", () => {});
test("skips itself", ({ skip }) => skip("no <printer> & \"paper\""));
test.todo("is to be written");
test.fails("is expected to fail", () => expect(1).toBe(2));
test.fails("passes unexpectedly", () => {});

test.each(["ünïcode ✓", "<&>\"'", "line\nbreak", "", "a > b"])("takes odd text: %s", (text) => {
  expect(text).not.toBe("a > b");
});

test("has the same name", () => {});
test("has the same name", () => expect(1).toBe(2));

describe("nested", () => {
  describe("deeper > still", () => {
    test("passes", () => {});
  });
  describe.skip("skipped suite", () => {
    test("is skipped with it", () => {});
  });
  describe.concurrent("concurrent", () => {
    test("one", async () => {});
    test("two", async () => {});
  });
});

describe("retries", { retry: 2 }, () => {
  // Fails once without a marker file, and then passes.
  test("is flaky", () => {
    const first = !existsSync("marker");
    writeFileSync("marker", "");
    if (first) throw new Error("first attempt");
  });
  test("stays broken", () => {
    throw new Error("an attempt");
  });
});

test("is repeated", { repeats: 2 }, () => {});

test("has an attachment", async ({ annotate }) => {
  await annotate("a note ✓", "notice");
  await annotate("a file", { body: "aGVsbG8=", contentType: "text/plain" });
});
