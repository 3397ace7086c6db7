import logging

import pytest
from reportportal_client import RPLogger

logging.setLoggerClass(RPLogger)
log = logging.getLogger("shop")
log.setLevel(logging.INFO)


@pytest.mark.parametrize("method", ["card", "invoice"])
def test_pay(method):
    log.info("paying by %s", method)


def test_ship():
    parcel = {"name": "parcel.txt", "data": b"a parcel", "mime": "text/plain"}
    log.warning("a parcel", attachment=parcel)
    assert 1 == 2, "lost"


@pytest.mark.skip(reason="no printer")
def test_print():
    pass
