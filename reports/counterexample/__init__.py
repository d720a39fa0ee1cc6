"""One failing input for a person: its bits drawn, its rule, and how much else fails."""
