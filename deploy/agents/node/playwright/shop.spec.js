const { test, expect } = require('@playwright/test');

test.describe('shop', () => {
  for (const method of ['card', 'invoice']) {
    test(`pays by ${method}`, async () => {
      await test.step('opens the cart', async () => {});
    });
  }

  test('ships', async ({}, info) => {
    await info.attach('parcel', { body: 'a parcel', contentType: 'text/plain' });
    expect('lost').toBe('found');
  });

  test.skip('prints', async () => {});
});
