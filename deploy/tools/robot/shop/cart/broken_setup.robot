*** Settings ***
Suite Setup    Fail    no cart

*** Test Cases ***
First
    Log    never

Second
    Log    never
