"""Asynchronous requests: accepted durably, processed by any node, and notified until they are settled.

`records` holds the record of each, `engine` runs jobs although processes die, `takeover` puts back those that
nobody runs, `jobs` are the jobs, `delivery` posts notifications, and `startup` opens all of them.
"""
