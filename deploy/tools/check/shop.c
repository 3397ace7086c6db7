/* All that Check can say about a test. */

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

START_TEST(passes) {
  printf("to stdout\n");
  ck_assert_int_eq(1, 1);
}
END_TEST
START_TEST(fails) { ck_assert_str_eq("one", "names ≠ <&> ]]>"); }
END_TEST
START_TEST(crashes) { raise(SIGSEGV); }
END_TEST
START_TEST(exits) { exit(3); }
END_TEST
START_TEST(hangs) { sleep(10); }
END_TEST
START_TEST(expects_a_signal) { raise(SIGSEGV); }
END_TEST
START_TEST(loops) { ck_assert_int_ne(_i, 1); }
END_TEST
START_TEST(passes_too) {}
END_TEST

static void broken(void) { ck_abort_msg("before it"); }

int main(void) {
  Suite *suite = suite_create("A shop <&>");
  TCase *cart = tcase_create("cart ✓");
  tcase_set_timeout(cart, 1);
  tcase_add_test(cart, passes);
  tcase_add_test(cart, fails);
  tcase_add_test(cart, crashes);
  tcase_add_test(cart, exits);
  tcase_add_test(cart, hangs);
  tcase_add_test_raise_signal(cart, expects_a_signal, SIGSEGV);
  tcase_add_loop_test(cart, loops, 0, 3);
  suite_add_tcase(suite, cart);
  TCase *fixture = tcase_create("broken fixture");
  tcase_add_unchecked_fixture(fixture, broken, NULL);
  tcase_add_test(fixture, passes_too);
  suite_add_tcase(suite, fixture);

  SRunner *runner = srunner_create(suite);
  srunner_set_tap(runner, "report.tap");
  srunner_set_xml(runner, "check.xml");
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
