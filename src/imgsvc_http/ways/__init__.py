"""The ways of a request for a picture: by upload, by a URL to fetch, by the URL of a picture, stored."""
