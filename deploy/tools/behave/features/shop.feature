@shop
Feature: A shop <&> "more"
  Several lines
  of description ✓

  Background:
    Given a cart

  Scenario: Pays by card
    When I pay 5 €
    Then I have paid
    And it prints "<b>&amp;</b> ✓"

  Scenario: Fails
    When I pay 0 €
    Then I have paid
    And it prints "never"

  Scenario: Raises
    When it breaks

  Scenario: Has an undefined step
    When nobody knows this step
    Then I have paid

  Scenario: Has a pending step
    When it is not written yet

  @skip
  Scenario: Is skipped
    Then I have paid

  Scenario: Skips itself
    When it is skipped because of "no <printer>"
    Then I have paid

  Scenario: Has a table and a text
    When it reads
      | text      | number |
      | ünï \| <> | 1      |
    And it reads
      """
      several "lines"
        of text
      """

  Scenario Outline: Pays <amount> with <card>
    When I pay <amount> €
    Then I have paid

    Examples: Good
      | amount | card   |
      | 1      | vïsa   |
      | 2      | "<&>'" |

    Examples: Bad
      | amount | card |
      | 0      |      |

  Rule: Only once
    @flaky
    Scenario: Is flaky
      When it fails at first

  @breaks_before
  Scenario: Has a broken hook before it
    Then I have paid

  @breaks_after
  Scenario: Has a broken hook after it
    When I pay 1 €
