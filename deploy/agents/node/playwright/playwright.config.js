const settings = { ...require('../reportportal'), includeTestSteps: true };

module.exports = {
  testMatch: 'shop.spec.js',
  retries: 1,
  reporter: [['list'], ['@reportportal/agent-js-playwright', settings]],
};
