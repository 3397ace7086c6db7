test("is not selected", () => {});
test.only("is the only one", () => {});
