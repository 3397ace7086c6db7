// Control characters, which jest-junit writes into XML as they are.

test("has \x07 in its name", () => {});

test("has \x1b[31mcolours\x1b[0m and \0 in its message", () => {
  throw new Error("\x1b[31mred\x1b[0m \x01 \x7f");
});
