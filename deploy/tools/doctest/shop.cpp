// All that doctest can say about a test.

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cstdlib>
#include <doctest/doctest.h>
#include <iostream>
#include <stdexcept>

TEST_CASE("passes") {
  std::cout << "to stdout: <b>&amp;</b> ✓" << std::endl;
  CHECK(1 == 1);
}
TEST_CASE("fails") {
  CHECK(std::string("one\ntwo") == "names ≠ <&> ]]>");
  FAIL("at last");
}
TEST_CASE("throws") { throw std::runtime_error("no shop"); }
TEST_CASE("is skipped" * doctest::skip()) { FAIL(""); }
TEST_CASE("may fail" * doctest::may_fail()) { CHECK(false); }
TEST_CASE("should fail" * doctest::should_fail()) { CHECK(false); }
TEST_CASE("passes unexpectedly" * doctest::should_fail()) { CHECK(true); }
TEST_CASE("fails as often as expected" * doctest::expected_failures(1)) { CHECK(false); }
TEST_CASE("takes too long" * doctest::timeout(1e-9)) { CHECK(true); }
TEST_CASE("has no assertion") {}
TEST_CASE("warns") { WARN(false); }
TEST_CASE("takes odd text: ünïcode ✓ <&>\"'") { CHECK(true); }

TEST_SUITE("a suite") {
  TEST_CASE("has subcases") {
    SUBCASE("passes") { CHECK(true); }
    SUBCASE("nested") {
      SUBCASE("fails") { CHECK(false); }
    }
  }
  TEST_CASE_TEMPLATE("is whole", T, int, double) { CHECK(T(1.5) == T(1)); }
}
SCENARIO("a shop") {
  GIVEN("a cart") {
    THEN("it ships") { CHECK(true); }
  }
}
struct Cart {
  Cart() { throw std::runtime_error("before it"); }
};
TEST_CASE_FIXTURE(Cart, "has a broken fixture") {}
TEST_CASE("crashes" * doctest::skip()) { std::abort(); }
