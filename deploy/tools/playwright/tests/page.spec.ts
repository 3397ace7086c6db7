// In Debian's Chromium.

import { expect, test } from "@playwright/test";

test.use({ screenshot: "only-on-failure", trace: "off" });

test("finds a button", async ({ page }) => {
  await page.setContent("<button>Pay</button>");
  await expect(page.getByRole("button", { name: "Pay" })).toBeVisible();
});
test("finds no link", async ({ page }) => {
  await page.setContent("<button>Pay</button>");
  await expect(page.getByRole("link")).toBeVisible({ timeout: 100 });
});
