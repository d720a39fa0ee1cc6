"""What calls promise besides values: members, memory, and what they leave behind."""
