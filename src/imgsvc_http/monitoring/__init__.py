"""What the service measures of itself: metrics, phases of a request, and a line for each request."""
