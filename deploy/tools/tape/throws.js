// An exception ends the process in the middle.
const test = require("tape");

test("passes", (t) => {
  t.pass();
  t.end();
});

test("throws", () => {
  throw new Error("uncaught");
});

test("is never run", (t) => t.end());
