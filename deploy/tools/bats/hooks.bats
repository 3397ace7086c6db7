# A hook that fails before all tests of a file.
setup_file() {
  false
}
@test "is never run" {
  true
}
