"""What ``castigate.py`` offers to programs; this package is internal, and only that file is not."""
