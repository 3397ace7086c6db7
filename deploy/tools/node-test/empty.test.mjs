// A file without tests counts as a test.
