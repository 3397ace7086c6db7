QUnit.test("passes", (assert) => assert.true(true));
throw new Error("while loading");
