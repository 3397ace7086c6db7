Deno.test("passes before it", () => {});
Deno.test("exits", () => Deno.exit(3));
Deno.test("is never run", () => {});
