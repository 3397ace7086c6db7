Feature: A shop

  Scenario: Pays "by" card
    Given a cart
    When I pay 5 €
    Then I have paid

  Scenario Outline: Pays <amount>
    Given a cart
    When I pay <amount> €
    Then I have paid

    Examples:
      | amount |
      | 7      |
      | 0      |

  Scenario: Ships
    Given a parcel
