module.exports = {
  spec: 'shop.spec.js',
  reporter: 'both.js',
};
