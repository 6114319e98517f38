"""Holding a session document against the rules: `rules.validate` is the door, `rule_table` the list of them."""
