"""What `deploy/kubernetes/check` checks: each module yields what is wrong, in words."""
