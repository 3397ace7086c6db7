// An error after the end of a test belongs to the test that runs then.
describe("uncaught", () => {
  it("breaks after its end", () => {
    setTimeout(() => {
      throw new Error("uncaught");
    }, 10);
  });
  it("runs meanwhile", (done) => setTimeout(done, 50));
});
