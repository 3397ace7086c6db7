*** Test Cases ***
Pays By Card
    Log    paying by card

Pays By Invoice
    Log    paying by invoice

Ships
    Log    a parcel
    Should Be Equal    1    2    lost

Prints
    Skip    no printer
