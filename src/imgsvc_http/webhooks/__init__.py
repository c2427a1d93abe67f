"""Asynchronous requests: accepted durably, processed by any node, and notified until it is settled.

`records` keeps what is true of each request, `engine` sees to it that work is done although processes die,
`runner` is that work, `delivery` posts the notification, `sources` holds uploads until they are processed.
"""
