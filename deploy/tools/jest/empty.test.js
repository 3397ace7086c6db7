// A file without tests fails.
