// All that CppUTest can say about a test.

#include <CppUTest/CommandLineTestRunner.h>
#include <CppUTest/TestHarness.h>
#include <cstdio>
#include <stdexcept>

TEST_GROUP(Shop){};
TEST(Shop, Passes) { CHECK(true); }
TEST(Shop, Fails) { STRCMP_EQUAL("one\ntwo", "names ≠ <&> ]]>"); }
IGNORE_TEST(Shop, IsIgnored) {}
TEST(Shop, HasNoCheck) {}
TEST(Shop, Leaks) { new int; }

TEST_GROUP(BrokenSetup) {
  void setup() { FAIL("before it"); }
};
TEST(BrokenSetup, IsNeverRun) {}

TEST_GROUP(BrokenTeardown) {
  void teardown() { FAIL("after it"); }
};
TEST(BrokenTeardown, PassesButBreaksLater) {}

int main(int count, char **arguments) { return CommandLineTestRunner::RunAllTests(count, arguments); }
