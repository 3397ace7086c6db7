*** Settings ***
Documentation    A folder of suites <&>
Metadata         Shop    *open*
Suite Setup      Log    before all
