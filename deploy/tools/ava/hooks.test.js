// A hook that fails before all: none of the tests is run.
import test from "ava";

test.before("opens", () => {
  throw new Error("before all");
});
test.after.always("closes", () => {
  throw new Error("after all");
});
test("is never run", (t) => t.pass());
