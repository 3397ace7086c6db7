// All that the test runner of Bun can say about a test.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";

test("passes", () => {
  console.log("to stdout: <b>&amp;</b> ✓");
});
test("fails", () => expect({ name: "Ann" }).toEqual({ name: "Bob <&> ]]>" }));
test("throws a text", () => {
  throw "a text";
});
test("hangs", () => new Promise(() => {}), 100);
test.skip("is skipped", () => {});
test.todo("is to be written");
test.todo("is to be written and fails", () => expect(1).toBe(2));
test.failing("is expected to fail", () => expect(1).toBe(2));
test.failing("passes unexpectedly", () => {});
test.each(["ünïcode ✓", "<&>\"'", "line\nbreak", "\x07"])("takes odd text: %s", (text) => {
  expect(text).not.toContain("\n");
});
test("has the same name", () => {});
test("has the same name", () => expect(1).toBe(2));

describe("nested", () => {
  describe('deeper > "still"', () => test("passes", () => {}));
  describe.skip("skipped suite", () => test("is skipped with it", () => {}));
});

// Fails once without a marker file, and then passes.
const flaky = () => {
  const first = !existsSync("marker");
  writeFileSync("marker", "");
  if (first) throw new Error("first attempt");
};
test("is flaky", flaky, { retry: 2 });
test(
  "stays broken",
  () => {
    throw new Error("an attempt");
  },
  { retry: 2 },
);

const fail = (when: string) => () => {
  throw new Error(when);
};
describe("a broken beforeAll", () => {
  beforeAll(fail("before all"));
  test("first", () => {});
});
describe("a broken beforeEach", () => {
  beforeEach(fail("before each"));
  test("is never run", () => {});
});
describe("a broken afterEach", () => {
  afterEach(fail("after each"));
  test("passes but breaks later", () => {});
});
describe("a broken afterAll", () => {
  afterAll(fail("after all"));
  test("passes before it", () => {});
});
