// Cannot be parsed.
test("is never found", () => {
