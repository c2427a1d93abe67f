"""The ``imgsvc`` command."""
