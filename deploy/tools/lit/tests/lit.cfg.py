"""All that lit can say about a test: one for each file."""

import lit.formats

config.name = "Shop <&>"
config.test_format = lit.formats.ShTest(False)
config.suffixes = [".test"]
