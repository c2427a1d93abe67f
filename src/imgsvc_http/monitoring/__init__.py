"""Monitoring: metrics, phases of a request, and a line for each request."""
