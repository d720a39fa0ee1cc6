"""Programs in any language, asked over stdin and stdout; docs/protocol.md has the protocol."""
