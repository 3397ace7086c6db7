// Throws while tests are collected.
test("is never run", () => {});
throw new Error("while collecting");
