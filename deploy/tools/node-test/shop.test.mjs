// All that the test runner of Node can say about a test.

import assert from "node:assert";
import { existsSync, writeFileSync } from "node:fs";
import { describe, it, suite, test } from "node:test";

test("passes", (t) => {
  t.diagnostic("a note ✓ <&>");
  console.log("to stdout: <b>&amp;</b>");
  console.error("to stderr: \x1b[31mred\x1b[0m");
});

test("fails", () => assert.deepStrictEqual({ name: "Ann" }, { name: "Bob" }, "names ≠ <&>"));
test("throws a text", () => {
  throw "a text";
});
test("throws an error with a cause", async () => {
  throw new Error("outer\nsecond line", { cause: new TypeError("inner") });
});
test("hangs", { timeout: 100 }, () => new Promise(() => {}));
test("is skipped", { skip: 'no <printer> & "paper"' }, () => {});
test("is skipped without a reason", { skip: true }, () => {});
test("skips itself", (t) => t.skip("not # today"));
test("is to be written", { todo: "bug #7" }, () => assert(false));
test("is to be written and passes", { todo: true }, () => {});
test.todo("has no body");
test("is expected to fail", { expectFailure: true }, () => assert(false));
test("rejects later", () => {
  Promise.reject(new Error("unhandled"));
});

for (const text of ["ünïcode ✓", "<&>\"'", "line\nbreak", "a # SKIP b", "back\\slash #", ""]) {
  test(`takes odd text: ${text}`, () => assert(!text.startsWith("back")));
}

test("has subtests", async (t) => {
  await t.test("passes", () => {});
  await t.test("fails", async (t) => {
    await t.test("deeper", () => assert(false));
  });
});
test("does not wait for its subtest", (t) => {
  t.test("is cancelled", () => new Promise((resolve) => setTimeout(resolve, 1000).unref()));
});
test("has a plan", (t) => {
  t.plan(2);
  t.assert.ok(true);
});

// Node has no retries; this one fails once without a marker file, and then passes.
test("is flaky", () => {
  const first = !existsSync("marker");
  writeFileSync("marker", "");
  assert(!first, "first attempt");
});

describe('a shop "<&>"', () => {
  it("passes", () => {});
  suite("nested", { concurrency: 2 }, () => {
    it("passes", () => {});
    it("has the same name", () => {});
    it("has the same name", () => assert(false));
  });
  describe("is skipped", { skip: "closed" }, () => it("is skipped with it", () => {}));
  describe("is to do", { todo: true }, () => it("fails as expected", () => assert(false)));
});
