"""Shows one failing input to a person: its bits, its rule, and how much else fails."""
