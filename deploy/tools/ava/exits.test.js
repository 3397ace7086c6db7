import test from "ava";

test("exits", () => process.exit(3));
test("is never run", (t) => t.pass());
