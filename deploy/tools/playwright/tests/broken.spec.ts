import { test } from "@playwright/test";

test("is never run", () => {});
throw new Error("while collecting");
