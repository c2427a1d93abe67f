"""Connections: TLS, the listener, keep-alive and draining."""
