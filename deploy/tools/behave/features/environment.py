from behave.contrib.scenario_autoretry import patch_scenario_with_autoretry


def before_feature(context, feature):
    if "breaks_before_all" in feature.tags:
        raise RuntimeError("before all")
    for scenario in feature.walk_scenarios():
        if "flaky" in scenario.effective_tags:
            patch_scenario_with_autoretry(scenario, max_attempts=3)


def before_scenario(context, scenario):
    if "breaks_before" in scenario.tags:
        raise RuntimeError("before it")


def after_scenario(context, scenario):
    if "breaks_after" in scenario.tags:
        raise RuntimeError("after it")
