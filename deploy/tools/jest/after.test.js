afterAll(() => {
  throw new Error("after all");
});

test("passes before a broken afterAll", () => {});
