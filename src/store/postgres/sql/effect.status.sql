-- fenced
-- :by must be the authority. A non_idempotent act never goes back to PENDING by itself: only a sender that knows that
-- nothing was sent, or an operator, may say so.
update tape.effects set status = :to, authority = coalesce(:hand, authority), item = coalesce(:hand, item),
  attempt = coalesce(:attempt, attempt), attempt_token = coalesce(:token, attempt_token),
  attempt_nonce = coalesce(:nonce, attempt_nonce), send_until = coalesce(tape.now_ms() + :send_in_ms, send_until),
  reason = coalesce(:reason, reason), outcome = coalesce(:outcome, outcome), changed_at = tape.now_ms()
where run = :run and pos = :pos and sub = :sub and tenant is not distinct from :tenant and authority = :by
  and status = any(string_to_array(:from, ','))
  and (:to <> 'PENDING' or semantics <> 'non_idempotent' or :reason in ('not_sent', 'operator'))
