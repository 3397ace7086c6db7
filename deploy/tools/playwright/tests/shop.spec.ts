// All that Playwright can say about a test that needs no browser.

import { existsSync, writeFileSync } from "node:fs";
import { expect, test } from "@playwright/test";

test("passes", { tag: ["@smoke"], annotation: { type: "issue", description: "https://example.org/7" } }, async () => {
  console.log("to stdout: <b>&amp;</b> ✓");
  console.error("to stderr: \x1b[31mred\x1b[0m");
  await test.step("outer", async () => {
    await test.step("inner ✓", async () => {});
  });
  await test.info().attach("a text", { body: "hello ✓", contentType: "text/plain" });
  writeFileSync(test.info().outputPath("cart.txt"), "a cart");
  await test.info().attach("a file", { path: test.info().outputPath("cart.txt") });
});

test("fails", async () => {
  await test.step("a step that fails", () => expect({ name: "Ann" }).toEqual({ name: "Bob <&> ]]>" }));
});
test("fails softly twice", () => {
  expect.soft(1).toBe(2);
  expect.soft("a", "a message").toBe("b");
});
test("throws an error with a cause", () => {
  throw new Error("outer\nsecond line", { cause: new TypeError("inner") });
});
test("hangs", async () => {
  test.setTimeout(200);
  await new Promise(() => {});
});
test.skip("is skipped", () => {});
test("skips itself", () => test.skip(true, 'no <printer> & "paper"'));
test.fixme("is to be fixed", () => {});
test.fail("is expected to fail", () => expect(1).toBe(2));
test.fail("passes unexpectedly", () => {});
for (const text of ["ünïcode ✓", "<&>\"'", "line\nbreak", "a › b", "@tag"]) {
  test(`takes odd text: ${text}`, () => expect(text).not.toBe("a › b"));
}
test("exits", () => process.exit(3));

test.describe("nested", () => {
  test.describe("deeper › still", () => {
    test("passes", () => {});
  });
  test.describe.skip("skipped suite", () => {
    test("is skipped with it", () => {});
  });
});

test.describe("serial", () => {
  test.describe.configure({ mode: "serial" });
  test("first", () => {});
  test("second", () => expect(1).toBe(2));
  test("is not run after it", () => {});
});

test.describe("retries", () => {
  test.describe.configure({ retries: 2 });
  // Fails once without a marker file, and then passes.
  test("is flaky", () => {
    const marker = `marker-${test.info().project.name}`;
    const first = !existsSync(marker);
    writeFileSync(marker, "");
    expect(first, "first attempt").toBe(false);
  });
  test("stays broken", () => expect(test.info().retry).toBe(7));
});
