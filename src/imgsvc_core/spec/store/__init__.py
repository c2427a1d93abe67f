"""What the ``store`` of a request may say."""
