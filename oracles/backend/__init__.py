"""A backend in a process of its own: requests, replies, the client, and what carries them."""
