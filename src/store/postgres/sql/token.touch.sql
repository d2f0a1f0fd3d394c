-- unfenced: for people who look for tokens that nobody uses. Not at every call: once a minute says as much.
update tape.tokens set used_at = tape.now_ms() where id = :id and (used_at is null or used_at < tape.now_ms() - 60000)
