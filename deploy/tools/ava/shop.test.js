// All that AVA can say about a test.

import test from "ava";

test("passes", (t) => {
  t.log("a note ✓ <&>");
  console.log("not ok 7 - only output");
  t.pass();
});

test("fails", (t) => t.deepEqual({ name: "Ann" }, { name: "Bob" }, "names ≠"));
test("throws", () => {
  throw new TypeError("first line\nsecond line");
});
test("has no assertion", () => {});
test("hangs", async (t) => {
  t.timeout(100);
  await new Promise((resolve) => setTimeout(resolve, 60_000).unref());
});
test.skip("is skipped", (t) => t.pass());
test("skips an assertion", (t) => t.pass.skip());
test.todo("is to be written # TODO");
test.failing("is expected to fail", (t) => t.fail());
test.failing("passes unexpectedly", (t) => t.pass());

for (const text of ["ünïcode ✓", "<&>\"'", "line\nbreak", "a # SKIP b", "back\\slash #"]) {
  test(`takes odd text: ${text}`, (t) => t.not(text, "back\\slash #"));
}

test.serial("tries twice", async (t) => {
  const first = await t.try((tt) => tt.fail());
  first.discard();
  t.pass();
});

test("rejects later", (t) => {
  Promise.reject(new Error("unhandled"));
  t.pass();
});

test.afterEach.always((t) => {
  if (t.title.endsWith("later in a hook")) throw new Error("after each");
});
test("passes but breaks later in a hook", (t) => t.pass());
