// All that Catch2 can say about a test.

#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

TEST_CASE("passes", "[smoke][order:1]") {
  std::cout << "to stdout: <b>&amp;</b> ✓" << std::endl;
  std::cerr << "to stderr" << std::endl;
  INFO("a note");
  CHECK(1 == 1);
}
TEST_CASE("fails", "[smoke]") {
  CHECK(std::string("one\ntwo") == "names ≠ <&> ]]>");
  CHECK_THAT("a", Catch::Contains("b"));
  FAIL("at last");
}
TEST_CASE("throws") { throw std::runtime_error("no shop"); }
TEST_CASE("is hidden", "[.]") { FAIL(); }
TEST_CASE("may fail", "[!mayfail]") { CHECK(false); }
TEST_CASE("should fail", "[!shouldfail]") { CHECK(false); }
TEST_CASE("passes unexpectedly", "[!shouldfail]") { CHECK(true); }
TEST_CASE("has no assertion") {}
TEST_CASE("warns") {
  WARN("a warning");
  CHECK_NOFAIL(false);
}
TEST_CASE("takes odd text: ünïcode ✓ <&>\"'") { CHECK(true); }
TEST_CASE("line\nbreak") { CHECK(true); }

TEST_CASE("has sections") {
  SECTION("passes") { CHECK(true); }
  SECTION("nested") {
    SECTION("fails") { CHECK(false); }
    SECTION("throws") { throw 7; }
  }
}
TEST_CASE("generates") {
  auto number = GENERATE(1, 2, 3);
  SECTION("is not two") { CHECK(number != 2); }
}
SCENARIO("a shop") {
  GIVEN("a cart") {
    WHEN("it is paid") {
      THEN("it ships") { CHECK(true); }
    }
  }
}
struct Cart {
  Cart() { throw std::runtime_error("before it"); }
};
TEST_CASE_METHOD(Cart, "has a broken fixture") {}
TEMPLATE_TEST_CASE("is whole", "[types]", int, double) { CHECK(TestType(1.5) == TestType(1)); }

// Fails once without a marker file, and then passes.
TEST_CASE("is flaky") {
  bool first = !std::filesystem::exists("marker");
  std::ofstream("marker").flush();
  CHECK_FALSE(first);
}
TEST_CASE("crashes", "[.crash]") { std::abort(); }
