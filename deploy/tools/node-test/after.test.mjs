import { after, test } from "node:test";

after(() => {
  throw new Error("after the file");
});
test("passes before a broken hook of its file", () => {});
