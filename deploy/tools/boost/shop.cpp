// All that Boost.Test can say about a test.

#define BOOST_TEST_MODULE A shop <&>
#include <boost/test/data/test_case.hpp>
#include <boost/test/included/unit_test.hpp>
#include <cstdlib>
#include <iostream>
#include <tuple>

namespace utf = boost::unit_test;

BOOST_AUTO_TEST_CASE(passes) {
  std::cout << "to stdout: <b>&amp;</b> ✓" << std::endl;
  BOOST_TEST_MESSAGE("a note");
  BOOST_TEST(true);
}
BOOST_AUTO_TEST_CASE(fails) {
  BOOST_TEST(std::string("one\ntwo") == "names ≠ <&>");
  BOOST_CHECK_MESSAGE(false, "a second failure");
}
// Only the first of the two texts is escaped in the report.
BOOST_AUTO_TEST_CASE(ends_a_section_of_xml, *utf::disabled()) { BOOST_TEST(std::string("a") == "]]>"); }
BOOST_AUTO_TEST_CASE(throws) { throw std::runtime_error("no shop"); }
BOOST_AUTO_TEST_CASE(is_disabled, *utf::disabled()) {}
BOOST_AUTO_TEST_CASE(is_skipped, *utf::precondition([](utf::test_unit_id) { return false; })) {}
BOOST_AUTO_TEST_CASE(is_expected_to_fail, *utf::expected_failures(1)) { BOOST_TEST(false); }
BOOST_AUTO_TEST_CASE(passes_unexpectedly, *utf::expected_failures(1)) { BOOST_TEST(true); }
BOOST_AUTO_TEST_CASE(depends, *utf::depends_on("fails")) {}
BOOST_AUTO_TEST_CASE(has_no_assertion) {}
BOOST_AUTO_TEST_CASE(warns) { BOOST_WARN(false); }
BOOST_AUTO_TEST_CASE(hangs, *utf::timeout(1)) {
  for (;;) {
  }
}
BOOST_AUTO_TEST_CASE(divides) {
  volatile int zero = 0;
  BOOST_TEST(1 / zero == 1);
}
BOOST_DATA_TEST_CASE(takes_odd_text, utf::data::make({"ünïcode ✓", "<&>\"'", "line\nbreak"})) {
  BOOST_TEST(std::string(sample) != "line\nbreak");
}
BOOST_AUTO_TEST_SUITE(nested)
BOOST_AUTO_TEST_SUITE(deeper)
BOOST_AUTO_TEST_CASE(passes) {}
BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE_END()

struct Broken {
  Broken() { throw std::runtime_error("before it"); }
};
struct BrokenLater {
  void teardown() { BOOST_FAIL("after it"); }
};
BOOST_FIXTURE_TEST_CASE(has_a_broken_fixture, Broken) {}
BOOST_FIXTURE_TEST_CASE(passes_but_breaks_later, BrokenLater) {}
BOOST_AUTO_TEST_SUITE(broken_suite, *utf::fixture([] { throw std::runtime_error("before all"); }))
BOOST_AUTO_TEST_CASE(is_never_run) {}
BOOST_AUTO_TEST_SUITE_END()
using Types = std::tuple<int, double>;
BOOST_AUTO_TEST_CASE_TEMPLATE(is_whole, T, Types) { BOOST_TEST(T(1.5) == T(1)); }
