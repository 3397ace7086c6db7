// All that Jest can say about a test.

test("passes", () => {
  console.log("to stdout: <b>&amp;</b> ✓");
  console.error("to stderr: \x1b[31mred\x1b[0m");
  process.stdout.write("without a final newline");
});

test("fails", () => {
  expect({ name: "Ann", ünï: "<&>" }).toEqual({ name: "Bob" });
});

test("throws no error", () => {
  throw "a text";
});

test("throws an error with a cause", async () => {
  throw new Error("outer\nsecond line ]]>", { cause: new TypeError("inner") });
});

test("hangs", () => new Promise(() => {}), 100);

test.skip("is skipped", () => {});
test.todo("is to be written");
xtest("is skipped too", () => {});

test.failing("is expected to fail", () => {
  expect(1).toBe(2);
});

test.failing("passes unexpectedly", () => {});

test.each(["ünïcode ✓", "<&>\"'", "line\nbreak", "%s", "", "a > b"])("takes odd text: %s", (text) => {
  expect(text).not.toBe("a > b");
});

test.each`
  price  | count
  ${1}   | ${2}
  ${0}   | ${3}`("multiplies $price by $count", ({ price, count }) => {
  expect(price * count).toBe(2);
});

test("has the same name", () => {});
test("has the same name", () => {
  expect(1).toBe(2);
});

test("", () => {});

describe("nested", () => {
  describe('deeper › "still"', () => {
    test("passes", () => {});
  });
  describe.skip("skipped suite", () => {
    test("is skipped with it", () => {});
  });
});
