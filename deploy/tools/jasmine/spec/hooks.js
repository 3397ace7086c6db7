// Hooks that fail. Karma ends at one of these, sooner or later.
describe('A shop <&> "quoted" with hooks', () => {
  describe("broken beforeAll", () => {
    beforeAll(() => {
      throw new Error("before all");
    });
    it("is never run", () => {});
  });
  describe("broken afterEach", () => {
    afterEach(() => {
      throw new Error("after each");
    });
    it("passes but breaks later", () => expect(1).toBe(1));
  });
  describe("broken afterAll", () => {
    afterAll(() => {
      throw new Error("after all");
    });
    it("passes before it", () => expect(1).toBe(1));
  });
});
