"""Who answers a case: the reference, the frameworks, a user's own adapter."""
