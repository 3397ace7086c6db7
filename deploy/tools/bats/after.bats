teardown_file() {
  echo "after all"
  false
}
@test "passes before it" {
  true
}
