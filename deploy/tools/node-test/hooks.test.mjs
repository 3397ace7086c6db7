// Hooks that fail.

import { after, afterEach, before, beforeEach, describe, it } from "node:test";

const fail = (when) => () => {
  throw new Error(when);
};

describe("a broken before", () => {
  before(fail("before all"));
  it("first", () => {});
  it("second", () => {});
});

describe("a broken beforeEach", () => {
  beforeEach(fail("before each"));
  it("is never run", () => {});
});

describe("a broken afterEach", () => {
  afterEach(fail("after each"));
  it("passes but breaks later", () => {});
  it("fails and breaks later", fail("within it"));
});

describe("a broken after", () => {
  after(fail("after all"));
  it("passes before it", () => {});
});
