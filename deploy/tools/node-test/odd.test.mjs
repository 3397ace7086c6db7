// Text that the reporter for JUnit writes into XML as it is.
import { test } from "node:test";

test("has \x07 in its name", () => {});
test("ends a section of XML", () => {
  throw new Error("]]> \x1b[31mred\x1b[0m");
});
