*** Settings ***
Suite Setup    Skip    closed on Sundays

*** Test Cases ***
Is Skipped With Its Suite
    Log    never
