@skip
Feature: A skipped feature

  Scenario: Is skipped with its feature
    Given a cart
