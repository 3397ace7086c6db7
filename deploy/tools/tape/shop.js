// All that tape can say about a test: each assertion is a line of TAP.

const test = require("tape");

test("passes", (t) => {
  t.comment("a note ✓");
  console.log("only output");
  t.pass();
  t.equal(1, 1, "one is one");
  t.end();
});

test("fails", (t) => {
  t.plan(2);
  t.deepEqual({ name: "Ann" }, { name: "Bob" }, "names ≠ <&>");
  t.equal("one\ntwo", "one\nthree", "lines");
});

test("throws in an assertion", (t) => {
  t.throws(() => {}, /nothing/, "should have thrown");
  t.error(new Error("first line\nsecond line"));
  t.end();
});

test("has # TODO in its name", (t) => {
  t.pass("an assertion with # SKIP and # TODO and back\\slash");
  t.pass("line\nbreak");
  t.end();
});

test("is to be written", { todo: "later" }, (t) => {
  t.fail("fails as expected");
  t.pass("passes unexpectedly");
  t.end();
});

test("is skipped", { skip: "no <printer>" }, (t) => t.end());
test("skips an assertion", (t) => {
  t.skip("half of it");
  t.pass("with a todo", { todo: true });
  t.end();
});

test("is nested", (t) => {
  t.test("in another test", (st) => {
    st.pass("deeper");
    st.end();
  });
  t.end();
});

test("hangs", { timeout: 100 }, () => {});

test("does not reach its plan", (t) => {
  t.plan(3);
  t.pass("only one");
  t.end();
});

test("ends twice", (t) => {
  t.end();
  t.end();
});

test.onFinish(() => console.log("# finished"));
