import { test } from "vitest";

test("is never run", () => {});
throw new Error("while collecting");
