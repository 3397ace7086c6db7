// Hooks that fail: the rest of their suite is not run.

const fail = (when) => () => {
  throw new Error(when);
};

describe("a broken before", () => {
  before(fail("before all"));
  it("first", () => {});
  it("second", () => {});
});

describe("a broken beforeEach", () => {
  beforeEach("with a name", fail("before each"));
  it("is never run", () => {});
  it("is never run either", () => {});
});

describe("a broken afterEach", () => {
  afterEach(fail("after each"));
  it("passes but breaks later", () => {});
  it("is never run", () => {});
});

describe("a broken after", () => {
  after(fail("after all"));
  it("passes before it", () => {});
});

describe("skipped by its hook", () => {
  before(function () {
    this.skip();
  });
  it("is skipped", () => {});
});
