// A file without tests is skipped.
