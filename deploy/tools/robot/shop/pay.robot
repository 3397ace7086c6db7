*** Settings ***
Documentation     All that Robot Framework can say about a test.
Test Tags         pay
Library           OperatingSystem
Library           ../Shop.py

*** Test Cases ***
Passes
    [Documentation]    Several
    ...    lines ✓
    [Tags]    smoke    order:1
    Log    <b>bold &amp;</b>    html=True
    Log To Console    to the console ✓
    Prints

Pays By "Card" ✓
    Log    paid

Has An Argument
    [Template]    Should Not Be Equal
    1      2

Fails
    Log    a warning    level=WARN
    Should Be Equal    1    2    one ≠ two <&> ]]>

Fails In A Block
    TRY
        Fail    caught
    EXCEPT    caught
        Log    caught it
    END
    FOR    ${number}    IN RANGE    3
        IF    ${number} == 2    Fail    at *HTML*<b>two</b>
    END

Continues After A Failure
    Run Keyword And Continue On Failure    Fail    first
    Run Keyword And Continue On Failure    Fail    second\nline
    Log    and goes on

Raises
    Raises    odd \x07 text ünïcode ✓

Is Skipped
    Skip    no <printer> & "paper"

Is Skipped If It Fails
    [Tags]    unstable
    Fail    not yet

Is Skipped By Its Tag
    [Tags]    printer
    Log    never

Fails In Its Setup
    [Setup]    Fail    before it
    Log    never

Passes But Fails In Its Teardown
    Log    it
    [Teardown]    Fail    after it

Fails Twice
    Fail    within it
    [Teardown]    Fail    after it

Hangs
    [Timeout]    0.2 seconds
    Sleep    5s

Has An Unknown Keyword
    No Such Keyword

Is Empty

Has A Template
    [Template]    Should Be Equal
    1      1
    <&>    ünï
    ${2}    ${3}

Is Flaky
    [Documentation]    Fails once without a marker file, and then passes.
    ${first}    Run Keyword And Return Status    File Should Not Exist    ${EXECDIR}/marker
    Create File    ${EXECDIR}/marker
    IF    ${first}    Fail    first attempt
