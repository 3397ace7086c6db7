// Hooks and fixtures that fail.

import { test as base } from "@playwright/test";

const fail = (when: string) => () => {
  throw new Error(when);
};
const test = base.extend<{ broken: string; breaksLater: string }>({
  broken: async ({}, use) => {
    throw new Error("fixture");
  },
  breaksLater: async ({}, use) => {
    await use("fine");
    throw new Error("fixture after it");
  },
});

test.describe("a broken beforeAll", () => {
  test.beforeAll(fail("before all"));
  test("first", () => {});
  test("second", () => {});
});
test.describe("a broken beforeEach", () => {
  test.beforeEach(fail("before each"));
  test("is never run", () => {});
});
test.describe("a broken afterEach", () => {
  test.afterEach(fail("after each"));
  test("passes but breaks later", () => {});
  test("fails and breaks later", fail("within it"));
});
test.describe("a broken afterAll", () => {
  test.afterAll(fail("after all"));
  test("passes before it", () => {});
  test("passes last", () => {});
});
test("has a broken fixture", ({ broken }) => {});
test("has a fixture that breaks later", ({ breaksLater }) => {});
