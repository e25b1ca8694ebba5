"""The site: configuration, processes, accounts."""
