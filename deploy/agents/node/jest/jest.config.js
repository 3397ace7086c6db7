module.exports = {
  testRegex: 'shop.spec.js$',
  reporters: ['default', ['@reportportal/agent-js-jest', require('../reportportal')]],
};
