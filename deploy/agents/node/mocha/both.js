// Reports to ReportPortal and prints the summary of Mocha.
const { reporters } = require('mocha');
const Agent = require('@reportportal/agent-js-mocha');

module.exports = class extends Agent {
  constructor(runner, options) {
    super(runner, { ...options, reporterOptions: require('../reportportal') });
    new reporters.Spec(runner, options);
  }
};
