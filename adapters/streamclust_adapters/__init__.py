"""The doors of streamclust: the command, and what turns outside streams into events."""
