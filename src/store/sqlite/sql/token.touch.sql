-- unfenced: for people who look for tokens that nobody uses. Not at every call: once a minute says as much.
update tokens set used_at = :at where id = :id and (used_at is null or used_at < :at - 60000)
