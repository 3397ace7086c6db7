// All that QUnit can say about a test.

QUnit.module("A shop <&>", (hooks) => {
  QUnit.test("passes", (assert) => {
    console.log("only output");
    assert.true(true, "a message ✓");
  });
  QUnit.test("fails", (assert) => {
    assert.deepEqual({ name: "Ann" }, { name: "Bob" }, "names ≠ ]]>");
    assert.equal("one\ntwo", "one\nthree");
  });
  QUnit.test("throws", () => {
    throw new TypeError("first line\nsecond line");
  });
  QUnit.test("rejects", () => Promise.reject("a text"));
  QUnit.test("has no assertion", () => {});
  QUnit.test("hangs", (assert) => {
    assert.timeout(100);
    assert.async();
  });
  QUnit.test("does not reach its plan", (assert) => {
    assert.expect(2);
    assert.true(true);
  });
  QUnit.skip("is skipped", () => {});
  QUnit.todo("is to be written", (assert) => assert.true(false));
  QUnit.todo("is written already", (assert) => assert.true(true));
  QUnit.test.if("is skipped on a condition", false, () => {});
  QUnit.test.each("takes odd text", ["ünïcode ✓", "line\nbreak", "a # SKIP b", "back\\slash #"], (assert, text) => {
    assert.notEqual(text, "back\\slash #");
  });

  QUnit.module("nested", () => {
    QUnit.test("passes", (assert) => assert.step("one") || assert.verifySteps(["one"]));
    QUnit.module.skip("skipped module", () => QUnit.test("is skipped with it", () => {}));
  });
  QUnit.module("broken before", { before: () => Promise.reject(new Error("before all")) }, () => {
    QUnit.test("first", (assert) => assert.true(true));
    QUnit.test("second", (assert) => assert.true(true));
  });
  QUnit.module("broken after", { after: () => Promise.reject(new Error("after all")) }, () => {
    QUnit.test("passes before it", (assert) => assert.true(true));
  });
});
