"""A live page in a browser: one view of the stream, sent as server-sent events."""
