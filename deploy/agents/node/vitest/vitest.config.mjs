import { RPReporter } from '@reportportal/agent-js-vitest';
import settings from '../reportportal.js';

export default {
  test: { include: ['shop.spec.mjs'], reporters: ['default', new RPReporter(settings)] },
};
