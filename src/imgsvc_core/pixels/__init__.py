"""How each step of a plan is done with libvips."""
