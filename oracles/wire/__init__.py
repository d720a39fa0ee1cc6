"""Programs in any language, asked through stdin and stdout: docs/protocol.md."""
