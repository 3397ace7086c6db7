#!/usr/bin/env bats
# All that Bats can say about a test.

bats_require_minimum_version 1.5.0

setup() {
  [[ $BATS_TEST_DESCRIPTION != *"broken setup"* ]]
}
teardown() {
  [[ $BATS_TEST_DESCRIPTION != *"broken teardown"* ]]
}

# bats test_tags=smoke
@test "passes" {
  echo "only output"
  echo "# a note ✓" >&3
}
@test "fails" {
  echo 'output <&> ]]>'
  run -0 echo "one"
  [ "$output" = "two" ]
}
@test "is skipped" {
  skip 'no <printer> & "paper"'
}
@test "is skipped without a reason" {
  skip
}
@test "takes odd text: ünïcode ✓ <&>\"' # SKIP \\ back" {
  true
}
@test "has a broken setup" {
  true
}
@test "has a broken teardown" {
  true
}
@test "hangs" {
  sleep 20
}
@test "calls what does not exist" {
  no_such_command
}
@test "exits" {
  exit 3
}
# Fails once without a marker file, and then passes.
@test "is flaky" {
  BATS_TEST_RETRIES=2
  if [[ ! -e $MARKER ]]; then
    touch "$MARKER"
    false
  fi
}
