@breaks_before_all
Feature: A feature whose hook fails

  Scenario: Is never run
    Given a cart
