"""The checks of `deploy/kubernetes/check`: each module yields the problems it finds."""
