describe("focused", () => {
  fit("is the only one", () => expect(1).toBe(1));
  it("is not selected", () => {});
});
