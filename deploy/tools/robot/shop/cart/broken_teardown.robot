*** Settings ***
Suite Teardown    Fail    cart does not close

*** Test Cases ***
Passes Before A Broken Teardown
    Log    it

Fails Before A Broken Teardown
    Fail    it
