"""Runs the peers one after the other and sets our figures beside theirs; behind bench/peers/run."""
