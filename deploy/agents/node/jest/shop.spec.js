describe('shop', () => {
  test.each(['card', 'invoice'])('pays by %s', () => {});
  test('ships', () => expect('lost').toBe('found'));
  test.skip('prints', () => {});
});
