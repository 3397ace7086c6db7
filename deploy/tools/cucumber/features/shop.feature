@shop
Feature: A shop <&> "more"
  Several lines
  of description ✓

  Background:
    Given a cart

  Scenario: Pays by card
    When I pay 5 €
    Then I have paid
    And it attaches things

  Scenario: Fails
    When I pay 0 €
    Then I have paid
    And I have paid

  Scenario: Raises
    When it breaks

  Scenario: Has an undefined step
    When nobody knows this step
    Then I have paid

  Scenario: Has a pending step
    When it is not written yet

  Scenario: Has an ambiguous step
    When it is ambiguous

  Scenario: Skips itself
    When it is skipped
    Then I have paid

  @skip
  Scenario: Is skipped by a hook
    Then I have paid

  Scenario: Hangs
    When it hangs

  Scenario: Has a table and a text
    When it reads:
      | text      | number |
      | ünï \| <> | 1      |
    And it reads:
      """json
      { "several": "lines" }
      """

  Scenario Outline: Pays <amount> with <card>
    When I pay <amount> €
    Then I have paid

    Examples: Good
      | amount | card   |
      | 1      | vïsa   |
      | 2      | "<&>'" |

    @bad
    Examples:
      | amount | card |
      | 0      |      |

  Rule: Only once
    Background:
      Given a cart

    @flaky
    Scenario: Is flaky
      When it fails at first

    @flaky
    Scenario: Stays broken
      When it breaks

  @broken_before
  Scenario: Has a broken hook before it
    Then I have paid

  @broken_after
  Scenario: Has a broken hook after it
    When I pay 1 €
