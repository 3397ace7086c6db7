// All that GoogleTest can say about a test.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iostream>
#include <stdexcept>

TEST(Shop, Passes) {
  RecordProperty("order", "1 < 2 & \"3\"");
  std::cout << "to stdout: <b>&amp;</b> ✓" << std::endl;
  SUCCEED() << "a note";
}
TEST(Shop, Fails) {
  EXPECT_EQ("one\ntwo", std::string("names ≠ <&> ]]>"));
  EXPECT_TRUE(false) << "a second failure\x01\x1b[31m";
}
TEST(Shop, Throws) { throw std::runtime_error("no shop"); }
TEST(Shop, SkipsItself) { GTEST_SKIP() << "no <printer> & \"paper\""; }
TEST(Shop, DISABLED_IsDisabled) { FAIL(); }
TEST(Shop, Dies) { EXPECT_DEATH(std::abort(), ""); }

// Fails once without a marker file, and then passes.
TEST(Shop, IsFlaky) {
  bool first = !std::filesystem::exists("marker");
  std::ofstream("marker").flush();
  EXPECT_FALSE(first) << "first attempt";
}

class Texts : public testing::TestWithParam<const char *> {};
TEST_P(Texts, TakesOddText) { EXPECT_STRNE(GetParam(), "line\nbreak"); }
INSTANTIATE_TEST_SUITE_P(Odd, Texts, testing::Values("ünïcode ✓", "<&>\"'", "line\nbreak"));
INSTANTIATE_TEST_SUITE_P(Named, Texts, testing::Values("a"), [](auto &) { return "OnlyOne"; });

template <typename T> class Numbers : public testing::Test {};
using Types = testing::Types<int, double>;
TYPED_TEST_SUITE(Numbers, Types);
TYPED_TEST(Numbers, AreWhole) { EXPECT_EQ(TypeParam(1.5), TypeParam(1)); }

class BrokenSuite : public testing::Test {
protected:
  static void SetUpTestSuite() { FAIL() << "before all"; }
};
TEST_F(BrokenSuite, RunsNevertheless) {}

class BrokenEnd : public testing::Test {
protected:
  static void TearDownTestSuite() { FAIL() << "after all"; }
  void TearDown() override { ADD_FAILURE() << "after each"; }
};
TEST_F(BrokenEnd, PassesButBreaksLater) {}

class BrokenStart : public testing::Test {
protected:
  void SetUp() override { FAIL() << "before each"; }
};
TEST_F(BrokenStart, IsNeverRun) { std::cout << "never" << std::endl; }

struct BrokenEnvironment : testing::Environment {
  void TearDown() override {
    if (std::getenv("BROKEN")) FAIL() << "after the program";
  }
};
auto *environment = testing::AddGlobalTestEnvironment(new BrokenEnvironment);

TEST(Crash, DISABLED_Crashes) { std::abort(); }
