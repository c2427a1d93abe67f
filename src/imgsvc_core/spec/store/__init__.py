"""The ``store`` of a request."""
