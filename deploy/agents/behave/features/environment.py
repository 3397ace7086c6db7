"""Reports to ReportPortal, as its documentation shows."""

from behave_reportportal.behave_agent import BehaveAgent, create_rp_service
from behave_reportportal.config import read_config


def before_all(context):
    config = read_config(context)
    context.client = create_rp_service(config)
    context.agent = BehaveAgent(config, context.client)
    context.agent.start_launch(context)


def after_all(context):
    context.agent.finish_launch(context)
    context.client.terminate()


def before_feature(context, feature):
    context.agent.start_feature(context, feature)


def after_feature(context, feature):
    context.agent.finish_feature(context, feature)


def before_scenario(context, scenario):
    if "skip" in scenario.tags:
        scenario.skip("no printer")
    context.agent.start_scenario(context, scenario)


def after_scenario(context, scenario):
    context.agent.finish_scenario(context, scenario)


def before_step(context, step):
    context.agent.start_step(context, step)


def after_step(context, step):
    context.agent.finish_step(context, step)
