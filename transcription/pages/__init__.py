"""Pages, most of them htmx."""
