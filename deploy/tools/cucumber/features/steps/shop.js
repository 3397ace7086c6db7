const assert = require("assert");
const fs = require("fs");
const { After, AfterAll, AfterStep, Before, BeforeAll, Given, Then, When } = require("@cucumber/cucumber");

Given("a cart", function () {
  this.paid = 0;
});
When("I pay {int} €", function (amount) {
  this.paid += amount;
  this.log(`paid ${amount} <b>&amp;</b>`);
});
Then("I have paid", function () {
  assert(this.paid > 0, "paid nothing: <&> ]]>\nsecond line");
});
Then("it attaches things", function () {
  this.attach("a text ✓");
  this.attach('{"a": 1}', "application/json");
  this.attach(Buffer.from([0x89, 0x50, 0x4e, 0x47]), { mediaType: "image/png", fileName: "cart.png" });
  this.link("https://example.org/cart");
  console.log("to stdout ✓");
});
When("it breaks", () => {
  throw new TypeError("broken ✗");
});
When("it is not written yet", () => "pending");
When("it is skipped", () => "skipped");
When("it is ambiguous", () => {});
When(/^it is ambig.*$/, () => {});
When("it hangs", { timeout: 100 }, () => new Promise(() => {}));
When("it reads:", (_content) => {});
When("it fails at first", () => {
  const first = !fs.existsSync("marker");
  fs.writeFileSync("marker", "");
  assert(!first, "first attempt");
});

Before({ tags: "@skip", name: "skips" }, () => "skipped");
Before("@broken_before", () => {
  throw new Error("before it");
});
After("@broken_after", function () {
  this.attach("from a hook");
  throw new Error("after it");
});
AfterStep(() => {});

if (process.env.BROKEN) {
  ({ BeforeAll, AfterAll })[process.env.BROKEN](() => {
    throw new Error(process.env.BROKEN);
  });
}
