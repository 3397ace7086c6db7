// All that Mocha can say about a test.

const assert = require("assert");
const fs = require("fs");

it("passes outside of a suite", () => {
  console.log("to stdout: <b>&amp;</b> ✓");
  process.stdout.write("without a final newline");
});

describe('A shop <&> "quoted"', () => {
  it("passes slowly", (done) => setTimeout(done, 80));
  it("fails", () => assert.deepStrictEqual({ name: "Ann" }, { name: "Bob" }, "names ≠ ]]>"));
  it("fails with a difference", () => assert.strictEqual("one\ntwo <&>", "one\nthree"));
  it("throws a text", () => {
    throw "a text";
  });
  it("throws an error with a cause", () => {
    throw new Error("outer\nsecond line", { cause: new TypeError("inner") });
  });
  it("hangs", function (done) {
    this.timeout(50);
  });
  it("calls done twice", (done) => {
    done();
    done();
  });
  it.skip("is skipped", () => {});
  it("is to be written");
  it("skips itself", function () {
    this.skip();
  });
  for (const text of ["ünïcode ✓", "<&>\"'", "line\nbreak", ""]) {
    it(`takes odd text: ${text}`, () => assert(text));
  }
  it("has the same name", () => {});
  it("has the same name", () => assert(false));

  context("nested", () => {
    describe("deeper", () => it("passes", () => {}));
    describe.skip("skipped suite", () => it("is skipped with it", () => {}));
  });
});

describe("retries", function () {
  this.retries(2);

  // Fails once without a marker file, and then passes.
  it("is flaky", () => {
    const first = !fs.existsSync("marker");
    fs.writeFileSync("marker", "");
    assert(!first, "first attempt");
  });
  it("stays broken", () => assert(false, "an attempt"));
});
