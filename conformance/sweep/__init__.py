"""The tier `full`: all inputs of a cast, compared chunk by chunk."""
