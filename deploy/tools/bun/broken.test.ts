import { test } from "bun:test";

test("is never run", () => {});
throw new Error("while collecting");
