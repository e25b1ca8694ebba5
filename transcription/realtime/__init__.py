"""WebSocket consumers and their wire schema."""
