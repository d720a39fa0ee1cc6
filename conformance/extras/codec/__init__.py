"""Codecs: functions of one's own that encode small floats, or decode them, judged on all inputs."""
