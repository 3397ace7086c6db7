const fs = require("fs");

// Also within a suite, this is for all tests of the file.
jest.retryTimes(2, { logErrorsBeforeRetry: true });

// Fails once without a marker file, and then passes.
test("is flaky", () => {
  const first = !fs.existsSync("marker");
  fs.writeFileSync("marker", "");
  if (first) throw new Error("first attempt");
});

test("stays broken", () => {
  throw new Error("an attempt");
});
