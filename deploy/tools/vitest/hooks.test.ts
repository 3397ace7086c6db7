// Hooks that fail.

import { afterAll, afterEach, beforeAll, beforeEach, describe, test } from "vitest";

const fail = (when: string) => () => {
  throw new Error(when);
};

describe("a broken beforeAll", () => {
  beforeAll(fail("before all"));
  test("first", () => {});
  test("second", () => {});
});

describe("a broken beforeEach", () => {
  beforeEach(fail("before each"));
  test("is never run", () => {});
});

describe("a broken afterEach", () => {
  afterEach(fail("after each"));
  test("passes but breaks later", () => {});
  test("fails and breaks later", fail("within it"));
});

describe("a broken afterAll", () => {
  afterAll(fail("after all"));
  test("passes before it", () => {});
});
