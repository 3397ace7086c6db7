module.exports = {
  default: { paths: ['shop.feature'], require: ['steps.js'], format: ['progress', './agent.js:agent.log'] },
};
