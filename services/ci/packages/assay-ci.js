#!/usr/bin/env node
// Runs the program of this platform, which is in a package of its own.
"use strict";

const { spawnSync } = require("node:child_process");
const { constants } = require("node:os");
const { name, optionalDependencies } = require("../package.json");

const platform = `${name}-${process.platform}-${process.arch}`;
const suffix = process.platform === "win32" ? ".exe" : "";

function program() {
  try {
    return require.resolve(`${platform}/bin/assay-ci${suffix}`);
  } catch {
    const packages = Object.keys(optionalDependencies).join(", ");
    console.error(
      `assay-ci: the package ${platform} is not installed. There are ${packages}; install without --omit=optional`,
    );
    process.exit(3);
  }
}

const { error, signal, status } = spawnSync(program(), process.argv.slice(2), { stdio: "inherit" });
if (error) {
  console.error(`assay-ci: ${error.message}`);
}
process.exit(signal ? 128 + constants.signals[signal] : (status ?? 3));
