Feature: Shop

  Scenario: Pays by card
    Given a cart
    Then it is paid by card

  Scenario: Pays by invoice
    Given a cart
    Then it is paid by invoice

  Scenario: Ships
    Given a cart
    Then it arrives

  @skip
  Scenario: Prints
    Given a cart
