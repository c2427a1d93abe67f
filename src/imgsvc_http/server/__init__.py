"""Connections: TLS, the listener, timeouts and draining."""
