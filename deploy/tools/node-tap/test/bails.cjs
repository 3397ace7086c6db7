const t = require("tap");

t.pass("an assertion without a test");
t.bailout("no <shop>");
