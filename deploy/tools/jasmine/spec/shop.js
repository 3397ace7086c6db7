// All that Jasmine can say about a spec. Karma runs this file in a browser.

describe('A shop <&> "quoted"', () => {
  it("passes", () => {
    console.log("to stdout ✓");
    expect(1).withContext("one").toBe(1);
  });
  it("fails twice", () => {
    expect({ name: "Ann" }).toEqual({ name: "Bob" });
    expect("one\ntwo").toBe("<&> ]]>");
  });
  it("throws", () => {
    throw new TypeError("first line\nsecond line");
  });
  it("throws a text", () => {
    throw "a text";
  });
  it("has no expectation", () => {});
  it("hangs", () => new Promise(() => {}), 100);
  xit("is skipped", () => {});
  it("is to be written");
  it("is pending", () => pending("no <printer>"));
  for (const text of ["ünïcode ✓", "<&>\"'", "line\nbreak"]) {
    it(`takes odd text: ${text}`, () => expect(text).not.toContain("\n"));
  }
  it("rejects later", (done) => {
    Promise.reject(new Error("unhandled"));
    setTimeout(done, 20);
  });
  describe("nested", () => {
    it("passes", () => expect(1).toBe(1));
    xdescribe("skipped suite", () => it("is skipped with it", () => {}));
  });
});
