// Ends its process, which Jest survives only in a worker.
test("exits", () => {
  process.exit(3);
});
