// All that the test runner of Deno can say about a test.

const assert = (value: boolean, message = "is false") => {
  if (!value) throw new Error(message);
};

Deno.test("passes", () => {
  console.log("to stdout: <b>&amp;</b> ✓");
});
Deno.test("fails", () => assert(false, "names ≠ <&> ]]>\nsecond line"));
Deno.test("throws a text", () => {
  throw "a text";
});
Deno.test({ name: "is ignored", ignore: true, fn: () => {} });
Deno.test("leaks a timer", () => {
  setTimeout(() => {}, 10_000);
});
for (const text of ["ünïcode ✓", "<&>\"'", "line\nbreak", "a # SKIP b", "back\\slash #"]) {
  Deno.test(`takes odd text: ${text}`, () => assert(!text.startsWith("back")));
}
Deno.test("has steps", async (t) => {
  await t.step("passes", () => {});
  await t.step("fails", async (t) => {
    await t.step("deeper", () => assert(false));
  });
  await t.step({ name: "is ignored", ignore: true, fn: () => {} });
});
Deno.test("does not wait for its step", (t) => {
  t.step("is cancelled", () => new Promise(() => {}));
});

// Fails once without a marker file, and then passes.
Deno.test("is flaky", () => {
  try {
    Deno.writeTextFileSync("marker", "", { createNew: true });
  } catch {
    return;
  }
  throw new Error("first attempt");
});
Deno.test("rejects later", () => {
  Promise.reject(new Error("unhandled"));
});
