"""The state of the service in its database: accounts, keys, usage, keyfiles, watermarks and answers."""
