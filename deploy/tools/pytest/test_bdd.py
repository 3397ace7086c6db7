"""Scenarios of pytest-bdd: one fails, one has no step."""

from pytest_bdd import given, parsers, scenarios, then, when

scenarios("shop.feature")


@given("a cart", target_fixture="cart")
def cart():
    return {"paid": 0}


@when(parsers.parse("I pay {amount:d} €"))
def pay(cart, amount):
    cart["paid"] += amount


@then("I have paid")
def paid(cart):
    assert cart["paid"] > 0
