import { test } from "node:test";

test("is run nevertheless", () => {});
throw new Error("while collecting");
