"""Pictures by URL: what a URL asks for, what the browser can show, the picture, and the answer."""
