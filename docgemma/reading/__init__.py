"""What a request asks for: links to what exists, asks and spans. No tool is called here."""
