import { test } from "node:test";

test("passes before it", () => {});
test("exits", () => process.exit(3));
test("is never run", () => {});
