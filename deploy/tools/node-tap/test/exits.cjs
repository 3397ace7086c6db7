const t = require("tap");

t.test("exits", async () => process.exit(3));
