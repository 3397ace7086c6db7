// All that node-tap can say about a test: assertions are lines of TAP in the tests.

const t = require("tap");

t.test("passes", (t) => {
  t.comment("a note ✓");
  console.log("only output");
  t.pass();
  t.equal(1, 1, "one is one");
  t.end();
});
t.test("fails", (t) => {
  t.same({ name: "Ann" }, { name: "Bob" }, "names ≠ <&> ]]>");
  t.end();
});
t.test("throws", async () => {
  throw new TypeError("first line\nsecond line");
});
t.test("hangs", { timeout: 200 }, () => new Promise((resolve) => setTimeout(resolve, 1000)));
t.test("is skipped", { skip: 'no <printer> & "paper"' }, (t) => t.end());
t.test("is to be written", { todo: "bug #7" }, (t) => {
  t.fail("fails");
  t.end();
});
t.test("has assertions to skip", async (t) => {
  t.pass("a skipped one", { skip: "not today" });
  t.fail("one to do", { todo: true });
});
for (const text of ["ünïcode ✓", "<&>\"'", "line\nbreak", "a # SKIP b", "back\\slash #"]) {
  t.test(`takes odd text: ${text}`, async (t) => t.not(text, "back\\slash #"));
}
t.test("is nested", async (t) => {
  await t.test("deeper", async (t) => {
    await t.test("deepest", async (t) => t.fail("too deep"));
  });
  await t.test("beside it", async (t) => t.pass());
});
t.test("does not reach its plan", (t) => {
  t.plan(2);
  t.pass();
  t.end();
});
t.test("has a broken teardown", async (t) => {
  t.teardown(() => {
    throw new Error("teardown");
  });
  t.pass();
});
