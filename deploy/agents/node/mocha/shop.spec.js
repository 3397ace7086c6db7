const assert = require('node:assert');

describe('shop', () => {
  it('pays by card', () => {});
  it('pays by invoice', () => {});
  it('ships', () => assert.equal('lost', 'found'));
  it.skip('prints', () => {});
});
