// Without surprises, and without failures.
describe("plain", () => it("passes", () => {}));
