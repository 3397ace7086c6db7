// Debian's Chromium runs as root, thus without its sandbox.
process.env.CHROME_BIN ??= "/usr/bin/chromium";

module.exports = (config) =>
  config.set({
    frameworks: ["jasmine"],
    files: ["spec/shop.js"],
    client: { jasmine: { random: false } },
    browsers: ["Headless"],
    customLaunchers: { Headless: { base: "ChromeHeadless", flags: ["--no-sandbox", "--disable-gpu"] } },
    reporters: ["progress", "junit"],
    junitReporter: { outputDir: ".", outputFile: "junit.xml", useBrowserName: false },
    colors: false,
    singleRun: true,
  });
