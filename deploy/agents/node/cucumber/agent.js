const { createRPFormatterClass } = require('@reportportal/agent-js-cucumber');

module.exports = createRPFormatterClass(require('../reportportal'));
