/* All that cmocka can say about a test. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* After the others, which it needs. */
#include <cmocka.h>

static void passes(void **state) { print_message("to stdout\n"); }
static void fails(void **state) { assert_string_equal("one", "names ≠ <&>"); }
static void ends_cdata(void **state) { assert_string_equal("one", "]]>"); }
static void skips(void **state) { skip(); }
static void crashes(void **state) { raise(SIGSEGV); }
static int broken(void **state) { return -1; }

int main(void) {
  const struct CMUnitTest cart[] = {
      cmocka_unit_test(passes),
      cmocka_unit_test(fails),
      cmocka_unit_test(skips),
      cmocka_unit_test(crashes),
      cmocka_unit_test_setup(passes, broken),
      cmocka_unit_test_teardown(passes, broken),
  };
  /* Names and messages are not escaped in the report, which is not XML. */
  const struct CMUnitTest odd[] = {
      {"takes odd text: ünïcode ✓ <&>", passes, NULL, NULL, NULL},
      cmocka_unit_test(ends_cdata),
  };
  const struct CMUnitTest closed[] = {cmocka_unit_test(passes)};
  int failed = cmocka_run_group_tests_name("cart", cart, NULL, NULL);
  failed += cmocka_run_group_tests_name("odd", odd, NULL, NULL);
  return failed + cmocka_run_group_tests_name("broken group", closed, broken, NULL);
}
