"""Parts of a picture that the result must not show."""
