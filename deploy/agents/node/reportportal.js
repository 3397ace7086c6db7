// The settings of all agents.
const { RP_URL, RP_TOKEN, RP_LAUNCH } = process.env;

module.exports = {
  apiKey: RP_TOKEN,
  endpoint: `${RP_URL}/api/v2`,
  project: 'agents',
  launch: RP_LAUNCH,
  attributes: [{ key: 'branch', value: 'main' }],
};
