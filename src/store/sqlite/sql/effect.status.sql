-- fenced
-- :by must be the authority. A non_idempotent act never goes back to PENDING by itself: only a sender that knows that
-- nothing was sent, or an operator, may say so.
update effects set status = :to, authority = coalesce(:hand, authority), item = coalesce(:hand, item),
  attempt = coalesce(:attempt, attempt), attempt_token = coalesce(:token, attempt_token),
  attempt_nonce = coalesce(:nonce, attempt_nonce), send_until = coalesce(:steady + :send_in_ms, send_until),
  reason = coalesce(:reason, reason), outcome = coalesce(:outcome, outcome), changed_at = :at
where run = :run and pos = :pos and sub = :sub and tenant = :tenant and authority = :by
  and instr(',' || :from || ',', ',' || status || ',') > 0
  and (:to <> 'PENDING' or semantics <> 'non_idempotent' or :reason in ('not_sent', 'operator'))
