// Hooks that fail. Those before a test fail it; one after all fails the whole file.

describe("a broken beforeAll", () => {
  beforeAll(() => {
    throw new Error("before all");
  });
  test("first", () => {});
  test("second", () => {});
});

describe("a broken beforeEach", () => {
  beforeEach(() => {
    throw new Error("before each");
  });
  test("is never run", () => {});
});

describe("a broken afterEach", () => {
  afterEach(() => {
    throw new Error("after each");
  });
  test("passes but breaks later", () => {});
  test("fails and breaks later", () => {
    throw new Error("within it");
  });
});
