"""The REST API: `server.run_api()` for the command line, `app.build_app(agent, tokens)` for a server of one's own."""
