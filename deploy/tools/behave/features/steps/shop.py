from pathlib import Path

from behave import given, then, when
from behave.api.pending_step import StepNotImplementedError


@given("a cart")
def cart(context):
    context.paid = 0


@when("I pay {amount:d} €")
def pay(context, amount):
    context.paid += amount


@then("I have paid")
def paid(context):
    assert context.paid > 0, "paid nothing: <&> ]]>\nsecond line"


@then('it prints "{text}"')
def prints(context, text):
    print(text)
    context.attach("text/plain", "an attachment ✓".encode())


@when("it breaks")
def breaks(context):
    raise ValueError("broken ✗")


@when("it is not written yet")
def pending(context):
    raise StepNotImplementedError("later")


@when('it is skipped because of "{reason}"')
def skip(context, reason):
    context.scenario.skip(reason)


@when("it reads")
def reads(context):
    assert context.table or context.text


@when("it fails at first")
def flaky(context):
    marker = Path("marker")
    first = not marker.exists()
    marker.touch()
    assert not first, "first attempt"
